// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/demo.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

PlotData CacheData(const DemoResult& result) {
  PlotData data{"cache", {}};
  for (const DemoCachePoint& point : result.cache) {
    data.rows.push_back(
        {"", {point.gib, 100 * point.hit_rate, 100 * point.belady_hit_rate}});
  }
  return data;
}

PlotData ServingData(const DemoResult& result) {
  const auto mib = [](const DemoServingResult& r) {
    return static_cast<double>(r.peak_blocks * r.block_bytes) /
           static_cast<double>(1u << 20);
  };
  const DemoServingResult& alone = result.alone;
  const DemoServingResult& shared = result.shared;
  // Each as a share of what it takes without sharing.
  const auto row = [](const std::string& name, double a, double b) {
    return PlotData::Row{name, {100, a == 0 ? 0 : 100 * b / a}};
  };
  return {"serving",
          {row("prompt tokens computed",
               static_cast<double>(alone.computed_prompt_tokens),
               static_cast<double>(shared.computed_prompt_tokens)),
           row("prefill time", alone.prefill_seconds, shared.prefill_seconds),
           row("KV memory", mib(alone), mib(shared))}};
}

}  // namespace

Plot DemoPlot(const DemoResult& result) {
  Plot plot =
      PoliciesPlot("What a paged, shared KV cache changes", result.policies);
  plot.data.push_back(CacheData(result));
  plot.data.push_back(ServingData(result));
  absl::StrAppendFormat(
      &plot.script,
      "set logscale x 2\n"
      "set xlabel 'KV memory (GiB)'\nset ylabel 'hit rate (%%)'\n"
      "set yrange [0:*]\nset key at graph 0.97,0.05 right bottom\nset title %s "
      "noenhanced\n"
      "plot $cache using 1:2 pt 7 lw 2 lc rgb '%s' title 'LRU', "
      "$cache using 1:3 pt 6 lw 2 dt 2 lc rgb '%s' title "
      "'Belady''s optimum'\n",
      PlotQuote(absl::StrCat("Prompt tokens found, ",
                             Grouped(result.trace.requests.size()),
                             " requests one after the other")),
      kBlue, kRed);
  absl::StrAppendFormat(
      &plot.script,
      "unset logscale\nset style data histogram\n"
      "set style histogram clustered gap 1\nset boxwidth 0.9\n"
      "unset xlabel\nset xrange [-0.6:2.6]\nset yrange [0:125]\n"
      "set ylabel 'share of the unshared run (%%)'\nunset grid\n"
      "set grid ytics lc rgb '#dddddd' lt 1 lw 0.5\n"
      "set key at graph 0.97,0.97 right top vertical maxrows 2 noreverse "
      "samplen 1\n"
      "set title 'A batch with a common prefix, served on this CPU'\n"
      "plot $serving using 2:xtic(1) lc rgb '%s' title 'nothing shared', "
      "'' using 3 lc rgb '%s' title 'prefix shared', "
      "'' using ($0+0.17):3:(sprintf('%%.0f %%%%',$3)) with labels "
      "offset 0.6,0.6 notitle\n"
      "unset multiplot",
      kGrey, kBlue);
  return plot;
}

}  // namespace paged_kv::tool
