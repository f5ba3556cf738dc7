// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_PLOT_H_
#define PAGED_KV_BENCHMARKS_TOOL_PLOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace paged_kv::tool {

// Colours that the colour-blind can tell apart (Okabe and Ito 2008).
inline constexpr char kBlue[] = "#0072B2";
inline constexpr char kOrange[] = "#E69F00";
inline constexpr char kGreen[] = "#009E73";
inline constexpr char kRed[] = "#D55E00";
inline constexpr char kPurple[] = "#CC79A7";
inline constexpr char kSky[] = "#56B4E9";
inline constexpr char kYellow[] = "#F0E442";
inline constexpr char kGrey[] = "#999999";

// A table of numbers that a script plots by the name of a gnuplot data block:
// `$name using 1:2`. Rows may begin with a label.
struct PlotData {
  std::string name;  // letters, digits and '_'
  struct Row {
    std::string label;  // empty: none
    std::vector<double> values;
  };
  std::vector<Row> rows;
};

// A picture: what gnuplot is told after the terminal, fonts and grid have
// been set up.
struct Plot {
  int width = 900;  // pixels
  int height = 540;
  std::vector<PlotData> data;
  std::string script;
};

// Draws with gnuplot into `path`, as SVG or PNG by its suffix. InvalidArgument
// for another suffix or a path that cannot be written; FailedPrecondition,
// saying what to install, if there is no gnuplot; Unknown with gnuplot's own
// words if it fails. Leaves no file behind then.
absl::Status WritePlot(const Plot& plot, const std::string& path);

// The errors of WritePlot() that can be known before long work: the suffix and
// a missing gnuplot.
absl::Status CheckCanPlot(absl::string_view path);

// `text` as a gnuplot string, in single quotes and with no markup in it.
std::string PlotQuote(absl::string_view text);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_PLOT_H_
