// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/kernels/attention_report.h"
#include "benchmarks/tool/kernels/machine.h"

namespace paged_kv::tool {
namespace {

constexpr double kGiga = 1e-9;

double MedianOf(const std::vector<AttentionResult>& results,
                double AttentionResult::*rate) {
  std::vector<double> values;
  for (const AttentionResult& r : results) values.push_back(kGiga * (r.*rate));
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

PlotData Points(const std::vector<AttentionResult>& results) {
  PlotData data{"points", {}};
  for (const AttentionResult& r : results) {
    data.rows.push_back(
        {r.attention_case.name, {r.FlopsPerByte(), kGiga * r.FlopRate()}});
  }
  return data;
}

// Whole powers of two around all points and the ridge of the roof.
std::string Ranges(const std::vector<AttentionResult>& results, double ridge,
                   double peak) {
  double low = std::min(1.0, ridge), high = ridge, slowest = peak;
  for (const AttentionResult& r : results) {
    low = std::min(low, r.FlopsPerByte());
    high = std::max(high, r.FlopsPerByte());
    slowest = std::min(slowest, kGiga * r.FlopRate());
  }
  const auto power = [](double value, double steps) {
    return std::exp2(std::round(std::log2(value)) + steps);
  };
  return absl::StrFormat("set xrange [%g:%g]\nset yrange [%g:%g]\n",
                         power(low, -1), power(high, 2), power(slowest, -2),
                         power(peak, 1));
}

std::string Title(const AttentionResult& r) {
  const AttentionCase& c = r.attention_case;
  return absl::StrFormat(
      "Paged %s, %d/%d heads of %d, %s, blocks of %d; %s, %d thread%s",
      c.prefill ? "prefill" : "decode", c.query_heads, c.shape.kv_heads,
      c.shape.head_dim, DTypeName(c.shape.dtype), c.shape.block_tokens,
      attention::IsaName(r.isa), r.threads, r.threads == 1 ? "" : "s");
}

}  // namespace

Plot RooflinePlot(const std::vector<AttentionResult>& results) {
  const AttentionResult& first = results.front();
  const double stream = MedianOf(results, &AttentionResult::stream_rate);
  const double gather = MedianOf(results, &AttentionResult::gather_rate);
  const double peak = MedianOf(results, &AttentionResult::peak_rate);
  Plot plot;
  plot.data = {Points(results)};
  plot.script = absl::StrCat(
      "set title ", PlotQuote(Title(first)), " noenhanced\n",
      "set logscale xy 2\nset grid xtics ytics\n", "set format '%g'\n",
      "set xlabel ", PlotQuote("flops per byte of K/V read"), "\n",
      "set ylabel 'Gflop/s'\nset key left top Left reverse samplen 3\n",
      "set samples 500\n", Ranges(results, peak / stream, peak),
      absl::StrFormat("roof(x, rate) = x * rate < %.9g ? x * rate : %.9g\n",
                      peak, peak),
      absl::StrFormat(
          "plot roof(x, %.9g) lw 2.5 lc rgb '%s' title %s,"
          " roof(x, %.9g) lw 1.5 dt 2 lc rgb '%s' title %s,",
          stream, kBlue,
          PlotQuote(absl::StrFormat(
              "stream %.1f GB/s, %s peak %.0f Gflop/s", stream,
              first.peak_is_bf16_dot ? "bf16 dot" : "f32 FMA", peak)),
          gather, kSky, PlotQuote(absl::StrFormat("gather %.1f GB/s", gather))),
      absl::StrFormat(" $points using 2:3 pt 7 ps 1.2 lc rgb '%s' title %s,",
                      kRed, PlotQuote("measured")),
      " '' using 2:3:1 with labels noenhanced left offset 1,-0.4 notitle");
  return plot;
}

}  // namespace paged_kv::tool
