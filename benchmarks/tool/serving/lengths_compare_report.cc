// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/serving/lengths_compare.h"
#include "benchmarks/tool/serving/serve_comparison.h"
#include "benchmarks/tool/serving/serve_report.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

std::string Milliseconds(double seconds) {
  return absl::StrFormat("%.4g", 1e3 * seconds);
}

std::string Times(double a, double b) {
  return b > 0 ? absl::StrFormat("%.1f", a / b) : "-";
}

std::string RecomputeText(const std::vector<RecomputeRow>& rows) {
  Table table({"context", "with cache ms/token", "without ms/token",
               "times slower", "equal tokens"});
  for (const RecomputeRow& row : rows) {
    table.Add({Grouped(row.context), Milliseconds(row.cached_s),
               Milliseconds(row.recomputed_s),
               Times(row.recomputed_s, row.cached_s),
               absl::StrCat(row.equal_tokens, " of ", row.generated)});
  }
  return table.Text();
}

std::string PrefillText(const std::vector<PrefillRow>& rows) {
  Table table({"prompt", "naive ms", "flash ms", "times slower", "naive held",
               "flash held", "largest difference"});
  for (const PrefillRow& row : rows) {
    table.Add({Grouped(row.tokens), Milliseconds(row.naive_s),
               Milliseconds(row.flash_s), Times(row.naive_s, row.flash_s),
               BytesText(row.naive_bytes), BytesText(row.flash_bytes),
               absl::StrFormat("%.1e", row.largest_difference)});
  }
  return table.Text();
}

std::string BatchingText(const std::vector<ServeResult>& results) {
  Table table({"batching", "seconds", "output tokens/s", "times none",
               "first token p50 ms", "p90", "per token p50 ms", "p90"});
  const double none =
      results.empty() ? 0 : Summarise(results[0]).output_tokens_per_s;
  for (const ServeResult& result : results) {
    const ServeSummary s = Summarise(result);
    table.Add({BatchingName(result.batching),
               absl::StrFormat("%.2f", result.stats.wall_s),
               absl::StrFormat("%.1f", s.output_tokens_per_s),
               Times(s.output_tokens_per_s, none),
               Milliseconds(s.first_token.p50), Milliseconds(s.first_token.p90),
               Milliseconds(s.per_token.p50), Milliseconds(s.per_token.p90)});
  }
  return table.Text();
}

// Whether a line of the block has anything above 0 to show on its logarithmic
// axis. Bytes, for one, are not known where a sanitizer replaces malloc.
bool HasPositive(const PlotData& data, const int columns[2]) {
  for (const PlotData::Row& row : data.rows) {
    if (row.values[static_cast<size_t>(columns[0] - 1)] > 0 &&
        row.values[static_cast<size_t>(columns[1] - 1)] > 0) {
      return true;
    }
  }
  return false;
}

// Panels of the plot. Where a part was not measured its panel is left out.
std::string LinesPanel(const char* title, const char* ylabel,
                       const PlotData& data, const int columns[2],
                       const char* const names[2]) {
  if (!HasPositive(data, columns)) return "set multiplot next\n";
  std::string script = absl::StrFormat(
      "set title '%s'\nset ylabel '%s'\nset logscale xy 2\n"
      "set logscale y 10\nset format x '%%.0f'\nset key left top Left reverse\n"
      "plot ",
      title, ylabel);
  const char* colours[] = {kRed, kBlue};
  for (int i = 0; i < 2; ++i) {
    absl::StrAppendFormat(&script,
                          "$%s using 1:%d with linespoints pt 7 lw 1.5 lc rgb "
                          "'%s' title '%s'%s",
                          data.name, columns[i], colours[i], names[i],
                          i == 0 ? ", " : "\n");
  }
  return script + "unset logscale\n";
}

std::string LinePanels(const PlotData& recompute, const PlotData& prefill) {
  const int times[] = {2, 3}, bytes[] = {4, 5};
  const char* cache[] = {"all tokens computed again", "K/V in the cache"};
  const char* attention[] = {"naive", "flash, over pages"};
  return absl::StrCat(
      "set xlabel 'tokens before it'\n",
      LinesPanel("A token of decoding", "milliseconds per token", recompute,
                 times, cache),
      "set xlabel 'prompt tokens'\n",
      LinesPanel("Prefill attention, one layer", "milliseconds", prefill, times,
                 attention),
      LinesPanel("Prefill attention: memory beside Q, K, V",
                 "megabytes (10^{6})", prefill, bytes, attention));
}

constexpr char kBars[] =
    "set title 'One workload, three ways of batching'\n"
    "set xlabel ''\nset ylabel 'output tokens per second'\n"
    "set xrange [-0.6:*]\nset yrange [0:*]\nset key off\n"
    "set offsets 0, 0, graph 0.1, 0\n"
    "set style fill solid\nset boxwidth 0.6\nset format x '%s'\n"
    "plot $batching using 0:2:xtic(1) with boxes lc rgb '#0072B2', "
    "$batching using 0:2:(sprintf('%.1f', $2)) with labels offset 0,0.7\n";

}  // namespace

std::string CompareText(const CompareResult& result) {
  std::string text = absl::StrCat(
      result.model, "\n\nDecoding with the K/V of all earlier tokens in the ",
      "cache, and without: every token computed again\n\n",
      RecomputeText(result.recompute),
      "\nAttention of a whole prompt in one layer, f32: all scores in memory, ",
      "and block by block over pages\n\n", PrefillText(result.prefill));
  if (!result.batching.empty()) {
    absl::StrAppend(&text, "\n", result.batching[0].requests.size(),
                    " requests, served by three ways of batching\n\n",
                    BatchingText(result.batching), "\n",
                    ComparisonText(CompareRuns(result.batching)));
  }
  if (result.interrupted) absl::StrAppend(&text, "(interrupted)\n");
  return text;
}

nlohmann::ordered_json CompareJson(const CompareResult& result, uint64_t seed) {
  nlohmann::ordered_json recompute = nlohmann::ordered_json::array();
  for (const RecomputeRow& row : result.recompute) {
    recompute.push_back({{"context", row.context},
                         {"generated", row.generated},
                         {"cached_s", row.cached_s},
                         {"recomputed_s", row.recomputed_s},
                         {"equal_tokens", row.equal_tokens}});
  }
  nlohmann::ordered_json prefill = nlohmann::ordered_json::array();
  for (const PrefillRow& row : result.prefill) {
    prefill.push_back({{"tokens", row.tokens},
                       {"naive_s", row.naive_s},
                       {"flash_s", row.flash_s},
                       {"naive_bytes", row.naive_bytes},
                       {"flash_bytes", row.flash_bytes},
                       {"largest_difference", row.largest_difference}});
  }
  nlohmann::ordered_json batching = nlohmann::ordered_json::array();
  for (const ServeResult& served : result.batching) {
    const ServeSummary s = Summarise(served);
    batching.push_back({{"batching", BatchingName(served.batching)},
                        {"wall_s", served.stats.wall_s},
                        {"answered", s.answered},
                        {"output_tokens_per_s", s.output_tokens_per_s},
                        {"first_token_p50_s", s.first_token.p50},
                        {"first_token_p90_s", s.first_token.p90},
                        {"per_token_p50_s", s.per_token.p50},
                        {"per_token_p90_s", s.per_token.p90}});
  }
  return {{"schema_version", kJsonSchemaVersion},
          {"command", "lengths --compare"},
          {"model", result.model},
          {"model_file", result.model_file},
          {"seed", seed},
          {"interrupted", result.interrupted},
          {"recompute", recompute},
          {"prefill", prefill},
          {"trace_sha256", result.trace_sha256},
          {"batching", batching},
          {"comparison", ComparisonJson(CompareRuns(result.batching))}};
}

Plot ComparePlot(const CompareResult& result) {
  PlotData recompute{"recompute", {}}, prefill{"prefill", {}};
  PlotData batching{"batching", {}};
  for (const RecomputeRow& row : result.recompute) {
    recompute.rows.push_back({"",
                              {static_cast<double>(row.context),
                               1e3 * row.recomputed_s, 1e3 * row.cached_s}});
  }
  for (const PrefillRow& row : result.prefill) {
    prefill.rows.push_back(
        {"",
         {static_cast<double>(row.tokens), 1e3 * row.naive_s, 1e3 * row.flash_s,
          1e-6 * static_cast<double>(row.naive_bytes),
          1e-6 * static_cast<double>(row.flash_bytes)}});
  }
  for (const ServeResult& served : result.batching) {
    batching.rows.push_back({BatchingName(served.batching),
                             {Summarise(served).output_tokens_per_s}});
  }
  Plot plot;
  plot.width = 1100;
  plot.height = 820;
  plot.data = {recompute, prefill, batching};
  plot.script = absl::StrCat(
      "set multiplot layout 2,2 title ", PlotQuote(result.model),
      " noenhanced\n", "set grid xtics ytics\n", LinePanels(recompute, prefill),
      batching.rows.empty() ? "" : kBars, "unset multiplot\n");
  return plot;
}

}  // namespace paged_kv::tool
