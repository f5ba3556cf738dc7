// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/card/card_run_report.h"

namespace paged_kv::tool {
namespace {

// More would be too thin to read.
constexpr uint32_t kShownLayers = 4;
constexpr double kLaneHeight = 0.7;  // of the distance between lanes

struct Lane {
  const char* what;
  const char* title;
  const char* colour;
};
// From the bottom.
constexpr Lane kLanes[] = {{"download", "download", kSky},
                           {"host", "host attends", kOrange},
                           {"kernel", "card attends", kGreen},
                           {"upload", "upload", kBlue},
                           {"stream", "pages sent", kPurple}};

struct PlacedEvent {
  const fpga_dma::DecodeEvent* event;
  size_t row;
};

// The events of a lane on as few rows as keep them from lying over each other:
// each takes the first row that is free when it starts.
std::vector<PlacedEvent> PlaceEvents(
    const std::vector<fpga_dma::DecodeEvent>& events, const char* what,
    absl::Time end, size_t* rows) {
  std::vector<PlacedEvent> placed;
  for (const fpga_dma::DecodeEvent& event : events) {
    if (event.what == what && event.start < end) placed.push_back({&event, 0});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedEvent& a, const PlacedEvent& b) {
                     return a.event->start < b.event->start;
                   });
  std::vector<absl::Time> busy_until;
  for (PlacedEvent& each : placed) {
    const auto row = std::find_if(
        busy_until.begin(), busy_until.end(),
        [&](absl::Time busy) { return busy <= each.event->start; });
    each.row = static_cast<size_t>(row - busy_until.begin());
    if (row == busy_until.end()) busy_until.emplace_back();
    busy_until[each.row] = each.event->finish;
  }
  *rows = busy_until.size();
  return placed;
}

}  // namespace

Plot CardTimelinePlot(const CardRun& run) {
  const std::vector<fpga_dma::DecodeEvent>& events = run.steps.back().events;
  absl::Time start = absl::InfiniteFuture();
  absl::Time end = absl::InfinitePast();
  for (const fpga_dma::DecodeEvent& event : events) {
    start = std::min(start, event.start);
    if (event.layer < kShownLayers && event.what != "stream") {
      end = std::max(end, event.finish);
    }
  }
  Plot plot;
  plot.height = 420;
  std::string boxes, tics;
  int lane_number = 0;
  for (const Lane& lane : kLanes) {
    PlotData data{lane.what, {}};
    size_t rows = 0;
    for (const PlacedEvent& each : PlaceEvents(events, lane.what, end, &rows)) {
      const fpga_dma::DecodeEvent& event = *each.event;
      const double from = absl::ToDoubleMicroseconds(event.start - start);
      const double to = absl::ToDoubleMicroseconds(event.finish - start);
      const double height = kLaneHeight / static_cast<double>(rows);
      const double bottom = lane_number - kLaneHeight / 2 +
                            height * static_cast<double>(each.row);
      // Layers in turn dark and light.
      data.rows.push_back({"",
                           {(from + to) / 2, bottom + height / 2, from, to,
                            bottom, bottom + height, event.layer % 2 * 1.0}});
    }
    absl::StrAppendFormat(&tics, "%s%s %d", lane_number == 0 ? "" : ", ",
                          PlotQuote(lane.title), lane_number);
    ++lane_number;
    if (data.rows.empty()) continue;
    plot.data.push_back(data);
    for (const int odd : {0, 1}) {
      absl::StrAppendFormat(
          &boxes,
          "%s$%s using 1:($7 == %d ? $2 : NaN):3:4:5:6 with boxxyerror "
          "fs solid %.2f %s lc rgb '%s' notitle",
          boxes.empty() ? "" : ", ", lane.what, odd, odd == 0 ? 0.85 : 0.40,
          // Of thin boxes it would hide what is dark and what is light.
          rows > 2 ? "noborder"
                   : absl::StrFormat("border lc rgb '%s'", lane.colour),
          lane.colour);
    }
  }
  plot.script = absl::StrFormat(
      "set title %s noenhanced\n"
      "set xrange [0:%.9g]\nset yrange [-0.6:%.9g]\n"
      "set xlabel \"time since the step's beginning, us, by the card's "
      "clock\"\n"
      "set ytics (%s)\nunset key\nplot %s\n",
      PlotQuote(absl::StrFormat(
          "A decode step, first %u layers (in turn dark and light): %s, %u x "
          "%u tokens",
          std::min(kShownLayers, run.card_case.shape.layers),
          std::string(CardModeName(run.mode)), run.card_case.batch,
          run.card_case.context)),
      absl::ToDoubleMicroseconds(end - start), lane_number - 0.4, tics, boxes);
  return plot;
}

}  // namespace paged_kv::tool
