// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/serving/lengths.h"

namespace paged_kv::tool {
namespace {

constexpr const char* kColours[] = {kBlue, kRed, kGreen, kPurple, kOrange};

// [tokens, prefill s, decode ms] of the rows of one batch size.
PlotData Points(const std::vector<LengthsRow>& rows, uint32_t batch) {
  PlotData data{absl::StrCat("batch", batch), {}};
  for (const LengthsRow& row : rows) {
    if (row.length.batch != batch) continue;
    data.rows.push_back({"",
                         {static_cast<double>(row.PromptTokens()),
                          row.prefill.wall_s, 1e3 * row.DecodeStepSeconds()}});
  }
  return data;
}

std::string CurveText(const Polynomial& fit, double scale) {
  std::string text = "0";
  for (size_t i = 0; i < fit.coefficients.size(); ++i) {
    absl::StrAppendFormat(&text, " + (%.9g) * x**%d",
                          scale * fit.coefficients[i], i);
  }
  return text;
}

// Points of each batch size and, where there are enough, the fitted curve.
std::string PanelScript(const std::vector<LengthsFit>& fits, int column,
                        absl::optional<Polynomial> LengthsFit::*fit,
                        double scale) {
  std::string script = "plot ";
  for (size_t i = 0; i < fits.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    const absl::optional<Polynomial>& curve = fits[i].*fit;
    std::string title = absl::StrCat("batch ", fits[i].batch);
    if (curve) {
      absl::StrAppendFormat(&title, ", R² %.4f", curve->r_squared);
      absl::StrAppendFormat(&script, "%s lw 1.5 lc rgb '%s' notitle, ",
                            CurveText(*curve, scale), colour);
    }
    absl::StrAppendFormat(
        &script,
        "$batch%d using 1:%d with points pt 7 ps 0.9 lc rgb '%s' "
        "title %s%s",
        fits[i].batch, column, colour, PlotQuote(title),
        i + 1 < fits.size() ? ", " : "\n");
  }
  return script;
}

}  // namespace

Plot LengthsPlot(const LengthsResult& result) {
  const std::vector<LengthsFit> fits = FitLengths(result.rows);
  Plot plot;
  plot.width = 1100;
  double longest = 1;
  for (const LengthsFit& fit : fits) {
    plot.data.push_back(Points(result.rows, fit.batch));
    longest = std::max(longest, fit.longest);
  }
  plot.script = absl::StrCat(
      "set multiplot layout 1,2 title ",
      PlotQuote(absl::StrCat(
          result.model, ": time by the length of the prompt, K/V in pages")),
      " noenhanced\n", absl::StrFormat("set xrange [0:%.9g]\n", 1.03 * longest),
      "set yrange [0:*]\nset samples 200\n",
      "set key left top Left reverse samplen 1\n",
      "set xlabel 'prompt tokens n'\nset grid xtics ytics\n",
      "set title 'Prefill: a + b n + c n²' noenhanced\n",
      "set ylabel 'seconds for the batch'\n",
      PanelScript(fits, 2, &LengthsFit::prefill, 1),
      "set title 'Decode: a + b n' noenhanced\n",
      "set ylabel 'milliseconds per step (a token of each sequence)'\n",
      PanelScript(fits, 3, &LengthsFit::decode, 1e3), "unset multiplot\n");
  return plot;
}

}  // namespace paged_kv::tool
