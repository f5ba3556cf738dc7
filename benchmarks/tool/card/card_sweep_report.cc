// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/card/card_sweep.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kModes = std::size(kFixedCardModes);
constexpr const char* kColours[kModes] = {kOrange, kGreen, kBlue, kPurple};

double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }
double Mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

std::string CardSweepText(const CardSweep& sweep) {
  const CardCase& c = sweep.card_case;
  std::string text = absl::StrFormat(
      "sweep     %u sequences, %u layers, %u/%u heads of %u; %.0f MiB of pages "
      "on the card; times of a step in ms\n\n",
      c.batch, c.shape.layers, c.query_heads, c.shape.kv_heads,
      c.shape.head_dim, Mib(sweep.options.device_bytes));
  Table table({"K/V of device", "K/V MiB", "host", "resident", "hybrid",
               "streamed", "auto", "over best"});
  for (const CardSweepPoint& point : sweep.points) {
    std::vector<std::string> row = {
        absl::StrFormat("%.2fx", point.ratio),
        absl::StrFormat("%.1f", Mib(point.kv_bytes))};
    for (const absl::optional<absl::Duration>& time : point.time) {
      row.push_back(time ? absl::StrFormat("%.3f", Ms(*time)) : "-");
    }
    row.push_back(std::string(CardModeName(point.chosen)));
    row.push_back(absl::StrFormat("%.3f", point.AutoOverBest()));
    table.Add(row);
  }
  absl::StrAppend(&text, table.Text(), "\n");
  for (const BreakEven& change : sweep.BreakEvens()) {
    absl::StrAppendFormat(&text,
                          "break-even: %s is fastest below %.2fx of the "
                          "device's memory, %s above\n",
                          std::string(CardModeName(change.below)), change.ratio,
                          std::string(CardModeName(change.above)));
  }
  absl::StrAppendFormat(
      &text,
      "mode auto takes at most %.3f of the best mode's time; streaming reaches "
      "at least %.3f of its double-buffering formula\n",
      sweep.WorstAutoOverBest(), sweep.WorstStreamShare());
  return text;
}

nlohmann::ordered_json CardSweepJson(const CardSweep& sweep) {
  nlohmann::ordered_json json = {
      {"device_bytes", sweep.options.device_bytes},
      {"batch", sweep.card_case.batch},
      {"layers", sweep.card_case.shape.layers},
      {"host_bytes_per_second", sweep.card_case.host_bytes_per_second},
      {"worst_auto_over_best", sweep.WorstAutoOverBest()},
      {"worst_stream_share", sweep.WorstStreamShare()}};
  for (const BreakEven& change : sweep.BreakEvens()) {
    json["break_evens"].push_back(
        {{"below", std::string(CardModeName(change.below))},
         {"above", std::string(CardModeName(change.above))},
         {"ratio", change.ratio}});
  }
  for (const CardSweepPoint& point : sweep.points) {
    nlohmann::ordered_json entry = {
        {"ratio", point.ratio},
        {"kv_bytes", point.kv_bytes},
        {"context", point.context},
        {"resident", point.resident},
        {"auto", std::string(CardModeName(point.chosen))},
        {"auto_over_best", point.AutoOverBest()},
        {"stream_share", point.StreamShare()},
        {"max_error", point.max_error}};
    for (size_t i = 0; i < kModes; ++i) {
      if (!point.time[i]) continue;
      const std::string name(CardModeName(kFixedCardModes[i]));
      entry[name + "_ms"] = Ms(*point.time[i]);
      entry[name + "_predicted_ms"] = Ms(*point.predicted[i]);
    }
    json["points"].push_back(entry);
  }
  return json;
}

Plot CardSweepPlot(const CardSweep& sweep) {
  Plot plot;
  plot.width = 1000;
  std::string lines;
  PlotData chosen{"chosen", {}};
  for (size_t i = 0; i < kModes; ++i) {
    const CardMode mode = kFixedCardModes[i];
    const std::string name(CardModeName(mode));
    PlotData data{name, {}};
    for (const CardSweepPoint& point : sweep.points) {
      // Where all is on the card, three modes are one.
      const bool same =
          mode == CardMode::kHybrid || mode == CardMode::kStreamed;
      if (!point.time[i] || (same && point.resident >= 1)) continue;
      data.rows.push_back({"", {point.ratio, Ms(*point.time[i])}});
      if (point.chosen == kFixedCardModes[i]) {
        chosen.rows.push_back({"", {point.ratio, Ms(*point.time[i])}});
      }
    }
    if (data.rows.empty()) continue;
    plot.data.push_back(data);
    absl::StrAppendFormat(&lines,
                          "$%s using 1:2 with linespoints pt 7 ps 0.6 lw 2 lc "
                          "rgb '%s' title %s, ",
                          name, kColours[i], PlotQuote(name));
  }
  plot.data.push_back(chosen);
  std::string marks;
  for (const BreakEven& change : sweep.BreakEvens()) {
    absl::StrAppendFormat(
        &marks,
        "set arrow from %.9g, graph 0 to %.9g, graph 1 "
        "nohead dt 2 lc rgb '%s'\n"
        "set label %s at %.9g, graph 0.03 offset 0.4,0 tc rgb "
        "'%s'\n",
        change.ratio, change.ratio, kGrey,
        PlotQuote(absl::StrFormat("%.2fx", change.ratio)), change.ratio, kGrey);
  }
  const CardCase& c = sweep.card_case;
  plot.script = absl::StrFormat(
      "set title %s noenhanced\nset logscale xy\n"
      "set xlabel \"bytes of K and V / device memory for pages (%.0f MiB)\"\n"
      "set ylabel \"attention of one decode step, ms, by the card's clock\"\n"
      "set key left top Left reverse samplen 2\n%s"
      "plot %s$chosen using 1:2 with points pt 6 ps 1.8 lw 2 lc rgb 'black' "
      "title %s\n",
      PlotQuote(absl::StrFormat(
          "Decode by who attends: %u sequences, %u layers, %u/%u heads of %u",
          c.batch, c.shape.layers, c.query_heads, c.shape.kv_heads,
          c.shape.head_dim)),
      Mib(sweep.options.device_bytes), marks, lines,
      PlotQuote("chosen by mode auto"));
  return plot;
}

}  // namespace paged_kv::tool
