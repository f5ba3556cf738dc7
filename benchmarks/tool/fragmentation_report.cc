// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/fragmentation.h"
#include "benchmarks/tool/replay_report.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;

// The block size at which paged policies stand beside the others.
constexpr uint32_t kShownBlockTokens = 16;

std::string BlockName(const FragmentationRow& row) {
  return row.block_tokens == 0 ? "-" : absl::StrCat(row.block_tokens);
}

std::string Description(const Trace& trace,
                        const FragmentationOptions& options) {
  return absl::StrFormat(
      "%s requests of %s, %.4g GiB of KV memory (%s tokens of Qwen2.5-7B)",
      Grouped(trace.requests.size()), trace.name, options.memory_gib,
      Grouped(options.capacity_slots()));
}

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

}  // namespace

std::string FragmentationText(const Trace& trace,
                              const FragmentationOptions& options,
                              const std::vector<FragmentationRow>& rows) {
  Table table({"policy", "block", "at once", "peak", "live", "tail", "reserved",
               "duplicate", "allocated", "hit rate", "preemptions",
               "never fit"});
  for (const FragmentationRow& row : rows) {
    const SlotShares& s = row.of_allocated;
    table.Add({std::string(PolicyName(row.policy)), BlockName(row),
               absl::StrFormat("%.1f", row.mean_running),
               absl::StrCat(row.peak_running), Percent(s.live), Percent(s.tail),
               Percent(s.reserved), Percent(s.duplicate),
               Percent(row.of_capacity.Allocated()), Percent(row.hit_rate),
               Grouped(row.preemptions), Grouped(row.never_fits)});
  }
  return absl::StrCat(
      Description(trace, options), ", all waiting from the start.\n",
      "at once: requests running while others wait. live, tail, reserved, "
      "duplicate: shares of\nthe allocated slots then. allocated: share of "
      "the memory; the rest is cached or free.\n\n",
      table.Text());
}

std::string FragmentationCsv(const std::vector<FragmentationRow>& rows) {
  Table table({"policy", "block_tokens", "mean_running", "peak_running", "live",
               "tail", "lookahead", "reserved", "duplicate", "capacity_live",
               "capacity_cached", "capacity_free", "hit_rate", "preemptions",
               "never_fits", "simulated_seconds"});
  const auto number = [](double x) { return absl::StrFormat("%.9g", x); };
  for (const FragmentationRow& row : rows) {
    const SlotShares& s = row.of_allocated;
    const SlotShares& c = row.of_capacity;
    table.Add({std::string(PolicyName(row.policy)),
               row.block_tokens == 0 ? "" : absl::StrCat(row.block_tokens),
               number(row.mean_running), absl::StrCat(row.peak_running),
               number(s.live), number(s.tail), number(s.lookahead),
               number(s.reserved), number(s.duplicate), number(c.live),
               number(c.cached), number(c.free), number(row.hit_rate),
               absl::StrCat(row.preemptions), absl::StrCat(row.never_fits),
               number(row.simulated_seconds)});
  }
  return table.Csv();
}

ordered_json FragmentationJson(const Trace& trace,
                               const FragmentationOptions& options,
                               const std::vector<FragmentationRow>& rows,
                               uint64_t seed) {
  ordered_json json = ReportHeader("fragmentation", seed, trace);
  json["requests_total"] = trace.requests.size();
  json["memory_gib"] = options.memory_gib;
  json["capacity_slots"] = options.capacity_slots();
  json["rows"] = ordered_json::array();
  for (const FragmentationRow& row : rows) {
    ordered_json r;
    r["policy"] = std::string(PolicyName(row.policy));
    r["block_tokens"] =
        row.block_tokens == 0 ? ordered_json() : ordered_json(row.block_tokens);
    r["mean_running"] = row.mean_running;
    r["peak_running"] = row.peak_running;
    r["effective_utilisation"] = row.of_allocated.live;
    r["waste"] = WasteJson(row.of_allocated);
    r["capacity"] = {{"allocated", row.of_capacity.Allocated()},
                     {"cached", row.of_capacity.cached},
                     {"free", row.of_capacity.free}};
    r["hit_rate"] = row.hit_rate;
    r["preemptions"] = row.preemptions;
    r["requests_never_fits"] = row.never_fits;
    r["simulated_seconds"] = row.simulated_seconds;
    json["rows"].push_back(std::move(r));
  }
  return json;
}

Plot FragmentationPlot(const Trace& trace, const FragmentationOptions& options,
                       const std::vector<FragmentationRow>& rows) {
  Plot plot;
  plot.width = 1200;
  plot.height = 860;
  plot.data = {PolicyData(rows), SweepData("paged", PolicyKind::kPaged, rows),
               SweepData("noshare", PolicyKind::kPagedNoShare, rows)};
  std::string& script = plot.script;
  absl::StrAppend(
      &script,
      "set multiplot layout 2,2 margins 0.07,0.98,0.08,0.84 spacing "
      "0.08,0.22 title ",
      PlotQuote(Description(trace, options)), " noenhanced\n",
      "set style data histogram\nset style histogram rowstacked\n"
      "set boxwidth 0.7\nset xtics rotate by -25 noenhanced\n"
      "set yrange [0:100]\nset ylabel 'share of the memory (%)'\n"
      "set title 'What the memory holds while requests wait' offset 0,1.4\n"
      "set key at graph 0.5,1.02 center bottom horizontal maxrows 1 samplen 1 "
      "width 1\n");
  struct Band {
    int column;
    const char* colour;
    const char* name;
  };
  constexpr Band kBands[] = {
      {2, kBlue, "live"},       {3, kRed, "tail"},
      {4, kOrange, "reserved"}, {5, kPurple, "duplicate"},
      {6, "#BDBDBD", "cached"}, {7, "#EEEEEE", "free"}};
  script += "plot ";
  for (const Band& band : kBands) {
    absl::StrAppendFormat(&script,
                          "$policies using %d:xtic(1) lc rgb '%s' title '%s',",
                          band.column, band.colour, band.name);
  }
  script.pop_back();
  absl::StrAppend(
      &script,
      "\nset style histogram clustered gap 1\nset yrange [0:*]\n"
      "set ylabel 'requests'\nset title 'Requests running at once' offset "
      "0,1.4\n"
      "unset key\nplot $policies using 8:xtic(1) lc rgb '",
      kGreen,
      "', '' using 0:8:(sprintf('%.1f',$8)) with labels offset 0,0.6 notitle\n"
      "set style data linespoints\nset logscale x 2\n"
      "set xtics norotate autofreq\nset xlabel 'tokens per block'\n"
      "set key at graph 0.03,0.97 left top vertical maxrows 2 Left reverse "
      "samplen 3\nset title offset 0,0\nset grid xtics ytics\n"
      "set ylabel 'waste (% of allocated slots)'\nset yrange [0:*]\n"
      "set title 'Waste by block size'\n");
  const std::string both = absl::StrFormat(
      "plot $paged using 1:%%d pt 7 lw 2 lc rgb '%s' title 'paged', "
      "$noshare using 1:%%d pt 6 lw 2 dt 2 lc rgb '%s' title "
      "'paged_noshare'\n",
      kBlue, kRed);
  const auto sweep = [&both](const char* column) {
    std::string text = both;
    for (size_t at; (at = text.find("%d")) != std::string::npos;) {
      text.replace(at, 2, column);
    }
    return text;
  };
  absl::StrAppend(&script, sweep("2"),
                  "set ylabel 'requests'\n"
                  "set key at graph 0.03,0.03 left bottom\n"
                  "set title 'Requests running at once, by block size'\n",
                  sweep("3"), "unset multiplot");
  return plot;
}

}  // namespace paged_kv::tool
