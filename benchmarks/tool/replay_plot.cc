// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "benchmarks/tool/replay_report.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

std::string Title(const Trace& trace, const ReplaySummary& summary) {
  return absl::StrCat(
      trace.short_name(), ", ", PolicyName(summary.options.policy), ", ",
      Grouped(summary.pool_blocks), " blocks of ", summary.options.block_tokens,
      summary.unbounded ? " (unbounded)" : "");
}

// Hit rate of windows of requests and of everything so far.
PlotData HitRates(const Trace& trace, const ReplaySummary& summary) {
  PlotData data{"hits", {}};
  const size_t count = trace.requests.size();
  const size_t window = std::max<size_t>(1, count / 100);
  double hits = 0, prompts = 0, window_hits = 0, window_prompts = 0;
  for (size_t i = 0; i < count; ++i) {
    const RequestOutcome& outcome = summary.result.outcomes[i];
    if (outcome.completed) {
      window_hits += outcome.hit_tokens;
      window_prompts += trace.requests[i].prompt_tokens;
    }
    if ((i + 1) % window != 0 && i + 1 != count) continue;
    hits += window_hits;
    prompts += window_prompts;
    if (prompts == 0 || window_prompts == 0) continue;
    data.rows.push_back(
        {"",
         {static_cast<double>(i + 1), 100 * window_hits / window_prompts,
          100 * hits / prompts}});
    window_hits = window_prompts = 0;
  }
  return data;
}

Plot SerialPlot(const Trace& trace, const ReplaySummary& summary) {
  Plot plot;
  plot.data.push_back(HitRates(trace, summary));
  const size_t window = std::max<size_t>(1, trace.requests.size() / 100);
  absl::StrAppend(
      &plot.script, "set title ",
      PlotQuote(absl::StrCat("Prompt tokens found in the cache: ",
                             Title(trace, summary))),
      " noenhanced\n",
      "set xlabel 'requests served'\n"
      "set ylabel 'hit rate (% of prompt tokens)'\n"
      "set yrange [0:100]\nset xrange [0:",
      trace.requests.size(),
      "]\nset format x \"%.0f\"\n"
      "set key outside bottom center horizontal width -2\n"
      "plot $hits using 1:2 with lines lw 1.5 lc rgb '",
      kSky, "' title ",
      PlotQuote(absl::StrCat("in windows of ", window, " requests")),
      ", $hits using 1:3 with lines lw 3 lc rgb '", kBlue, "' title 'so far'");
  if (summary.belady_hit_rate.has_value()) {
    absl::StrAppendFormat(
        &plot.script,
        ", %.6g with lines dt 2 lw 2 lc rgb '%s' title 'Belady''s optimum, "
        "whole trace'",
        100 * *summary.belady_hit_rate, kRed);
  }
  return plot;
}

PlotData Samples(const ReplaySummary& summary) {
  PlotData data{"samples", {}};
  for (const UsageSample& sample : summary.result.usage.samples()) {
    const SlotCounts& s = sample.slots;
    const double percent = 100.0 / static_cast<double>(s.Total());
    double stacked = 0;
    PlotData::Row row;
    row.values.push_back(absl::ToDoubleSeconds(sample.time));
    for (const uint64_t slots : {s.live, s.tail, s.reserved + s.lookahead,
                                 s.duplicate, s.quarantined, s.cached}) {
      stacked += percent * static_cast<double>(slots);
      row.values.push_back(stacked);
    }
    row.values.push_back(sample.running);
    row.values.push_back(sample.waiting);
    data.rows.push_back(std::move(row));
  }
  return data;
}

Plot TracePlot(const Trace& trace, const ReplaySummary& summary) {
  Plot plot;
  plot.height = 860;
  plot.data.push_back(Samples(summary));
  // Bands from the highest sum down, so that each covers the ones above it.
  struct Band {
    int column;
    const char* colour;
    const char* name;
  };
  constexpr Band kBands[] = {{7, "#D9D9D9", "cached (evictable)"},
                             {6, kGrey, "quarantined"},
                             {5, kPurple, "duplicate"},
                             {4, kOrange, "reserved"},
                             {3, kRed, "tail"},
                             {2, kBlue, "live"}};
  absl::StrAppend(
      &plot.script,
      "set multiplot layout 3,1 margins 0.11,0.78,0.08,0.94 "
      "spacing 0.04\nset title ",
      PlotQuote(absl::StrCat("Slots by state: ", Title(trace, summary))),
      " noenhanced\n",
      "set xrange [0:*]\nset yrange [0:100]\n"
      "set ylabel 'share of the pool (%)'\nset format x ''\n"
      "set key at screen 0.80, graph 0.95 left top Left reverse samplen 2\n"
      "plot ");
  for (const Band& band : kBands) {
    absl::StrAppendFormat(
        &plot.script,
        "$samples using 1:%d with filledcurves x1 lc rgb '%s' "
        "title '%s',",
        band.column, band.colour, band.name);
  }
  plot.script.pop_back();
  absl::StrAppend(&plot.script,
                  "\nunset key\nset title ''\nset yrange [0:*]\n"
                  "set ylabel 'requests running'\n"
                  "plot $samples using 1:8 with lines lw 1.5 lc rgb '",
                  kBlue,
                  "'\nset format x \"%.0f\"\nset xlabel 'simulated time (s)'\n"
                  "set ylabel 'requests waiting'\n"
                  "plot $samples using 1:9 with lines lw 2 lc rgb '",
                  kOrange, "'\nunset multiplot");
  return plot;
}

}  // namespace

Plot ReplayPlot(const Trace& trace, const ReplaySummary& summary) {
  return summary.options.concurrency == Concurrency::kSerial
             ? SerialPlot(trace, summary)
             : TracePlot(trace, summary);
}

}  // namespace paged_kv::tool
