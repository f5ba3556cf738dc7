// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/fragmentation.h"

namespace paged_kv::tool {
namespace {

// The block size at which paged policies stand beside the others.
constexpr uint32_t kShownBlockTokens = 16;

// One row per policy: the paged ones at the shown block size, or the nearest.
std::vector<FragmentationRow> OnePerPolicy(
    const std::vector<FragmentationRow>& rows) {
  std::vector<FragmentationRow> chosen;
  for (const FragmentationRow& row : rows) {
    if (chosen.empty() || chosen.back().policy != row.policy) {
      chosen.push_back(row);
    } else if (row.block_tokens <= kShownBlockTokens) {
      chosen.back() = row;
    }
  }
  return chosen;
}

PlotData PolicyData(const std::vector<FragmentationRow>& rows) {
  PlotData data{"policies", {}};
  for (const FragmentationRow& row : OnePerPolicy(rows)) {
    const SlotShares& s = row.of_capacity;
    data.rows.push_back(
        {row.block_tokens == 0
             ? std::string(PolicyName(row.policy))
             : absl::StrCat(PolicyName(row.policy), " ", row.block_tokens),
         {100 * s.live, 100 * s.tail, 100 * (s.reserved + s.lookahead),
          100 * s.duplicate, 100 * s.cached, 100 * s.free, row.mean_running}});
  }
  return data;
}

PlotData SweepData(const std::string& name, PolicyKind kind,
                   const std::vector<FragmentationRow>& rows) {
  PlotData data{name, {}};
  for (const FragmentationRow& row : rows) {
    if (row.policy != kind) continue;
    data.rows.push_back(
        {"",
         {static_cast<double>(row.block_tokens),
          100 * (1 - row.of_allocated.live), row.mean_running}});
  }
  return data;
}

// Both paged policies over block sizes; `column` of SweepData is the height.
std::string SweepScript(absl::string_view title, absl::string_view y_label,
                        int column) {
  return absl::StrFormat(
      "set title '%s'\nset ylabel '%s'\n"
      "plot $paged using 1:%d pt 7 lw 2 lc rgb '%s' title 'paged', "
      "$noshare using 1:%d pt 6 lw 2 dt 2 lc rgb '%s' title "
      "'paged_noshare'\n",
      title, y_label, column, kBlue, column, kRed);
}

}  // namespace

Plot PoliciesPlot(const std::string& title,
                  const std::vector<FragmentationRow>& rows) {
  Plot plot;
  plot.width = 1200;
  plot.height = 860;
  plot.data = {PolicyData(rows)};
  absl::StrAppend(
      &plot.script,
      "set multiplot layout 2,2 margins 0.07,0.98,0.08,0.84 spacing "
      "0.08,0.22 title ",
      PlotQuote(title), " noenhanced\n",
      "set style data histogram\nset style histogram rowstacked\n"
      "set boxwidth 0.7\nset xtics rotate by -25 noenhanced\n"
      "set yrange [0:100]\nset ylabel 'share of the memory (%)'\n"
      "set title 'What the memory holds while requests wait' offset 0,1.4\n"
      "set key at graph 0.5,1.02 center bottom horizontal maxrows 1 samplen 1 "
      "width 1\nplot ");
  struct Band {
    int column;
    const char* colour;
    const char* name;
  };
  constexpr Band kBands[] = {
      {2, kBlue, "live"},       {3, kRed, "tail"},
      {4, kOrange, "reserved"}, {5, kPurple, "duplicate"},
      {6, "#BDBDBD", "cached"}, {7, "#EEEEEE", "free"}};
  for (const Band& band : kBands) {
    absl::StrAppendFormat(&plot.script,
                          "$policies using %d:xtic(1) lc rgb '%s' title '%s',",
                          band.column, band.colour, band.name);
  }
  plot.script.pop_back();
  absl::StrAppend(
      &plot.script,
      "\nset style histogram clustered gap 1\nset yrange [0:*]\n"
      "set ylabel 'requests'\nset title 'Requests running at once' offset "
      "0,1.4\n"
      "unset key\nplot $policies using 8:xtic(1) lc rgb '",
      kGreen,
      "', '' using 0:8:(sprintf('%.1f',$8)) with labels offset 0,0.6 notitle\n"
      // For the lower panels.
      "set style data linespoints\nset xtics norotate autofreq\n"
      "set title offset 0,0\nset grid xtics ytics\n"
      "set key at graph 0.03,0.97 left top vertical maxrows 2 Left reverse "
      "samplen 3\n");
  return plot;
}

Plot FragmentationPlot(const Trace& trace, const FragmentationOptions& options,
                       const std::vector<FragmentationRow>& rows) {
  Plot plot = PoliciesPlot(DescribeFragmentation(trace, options), rows);
  plot.data.push_back(SweepData("paged", PolicyKind::kPaged, rows));
  plot.data.push_back(SweepData("noshare", PolicyKind::kPagedNoShare, rows));
  absl::StrAppend(
      &plot.script, "set logscale x 2\nset xlabel 'tokens per block'\n",
      SweepScript("Waste by block size", "waste (% of allocated slots)", 2),
      "set key at graph 0.03,0.03 left bottom\n",
      SweepScript("Requests running at once, by block size", "requests", 3),
      "unset multiplot");
  return plot;
}

}  // namespace paged_kv::tool
