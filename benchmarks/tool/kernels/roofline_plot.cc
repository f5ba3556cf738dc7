// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <iterator>
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
    data.rows.push_back({"", {r.FlopsPerByte(), kGiga * r.FlopRate()}});
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

// Roofs of the other kinds of multiply-add, below the highest one.
std::string LowerPeaks(const AttentionResult& r, double stream) {
  std::string script;
  for (const PeakRate& peak : r.peaks) {
    if (peak.name == r.peak_name) continue;
    const double rate = kGiga * peak.rate;
    absl::StrAppendFormat(
        &script, " x * %.9g < %.9g ? NaN : %.9g lw 1.5 lc rgb '%s' title %s,",
        stream, rate, rate, kGrey,
        PlotQuote(absl::StrFormat("%s peak %.0f Gflop/s", PeakName(peak.name),
                                  rate)));
  }
  return script;
}

// One point, with its name in the key: points of one intensity lie so close
// that names beside them would overlap.
std::string PointScript(const AttentionResult& r, size_t i) {
  constexpr const char* kColours[] = {kRed, kGreen, kPurple, kOrange,
                                      "#000000"};
  constexpr int kShapes[] = {7, 5, 9, 11, 13};  // filled ones
  return absl::StrFormat(
      " $points using 1:2 every ::%d::%d pt %d ps 1.4 lc rgb '%s' title %s,", i,
      i, kShapes[i / std::size(kColours) % std::size(kShapes)],
      kColours[i % std::size(kColours)],
      PlotQuote(absl::StrFormat("%s: %.1f Gflop/s, %.0f %% of the bound",
                                r.attention_case.name, kGiga * r.FlopRate(),
                                100 * r.ShareOfBound())));
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
          PlotQuote(absl::StrFormat("stream %.1f GB/s, %s peak %.0f Gflop/s",
                                    stream, PeakName(first.peak_name), peak)),
          gather, kSky, PlotQuote(absl::StrFormat("gather %.1f GB/s", gather))),
      LowerPeaks(first, stream));
  for (size_t i = 0; i < results.size(); ++i) {
    absl::StrAppend(&plot.script, PointScript(results[i], i));
  }
  plot.script.pop_back();  // the last comma
  return plot;
}

}  // namespace paged_kv::tool
