// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/demo.h"
#include "benchmarks/tool/replay_report.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

using nlohmann::ordered_json;

const FragmentationRow& RowOf(const DemoResult& result, PolicyKind kind) {
  return *std::find_if(
      result.policies.begin(), result.policies.end(),
      [kind](const FragmentationRow& row) { return row.policy == kind; });
}

double PeakMiB(const DemoServingResult& serving) {
  return static_cast<double>(serving.peak_blocks * serving.block_bytes) /
         static_cast<double>(1u << 20);
}

ordered_json ServingJson(const DemoServingResult& serving) {
  return {{"prompt_tokens", serving.prompt_tokens},
          {"computed_prompt_tokens", serving.computed_prompt_tokens},
          {"steps", serving.steps},
          {"peak_blocks", serving.peak_blocks},
          {"peak_bytes", serving.peak_blocks * serving.block_bytes},
          {"prefill_seconds", serving.prefill_seconds},
          {"decode_seconds", serving.decode_seconds},
          {"decode_tokens", serving.decode_tokens},
          {"max_attention_error", serving.max_attention_error},
          {"checked_steps", serving.checked_steps}};
}

}  // namespace

std::string DemoCacheText(const DemoResult& result) {
  Table table({"KV memory", "found in the cache", "Belady's optimum"});
  for (const DemoCachePoint& point : result.cache) {
    table.Add({absl::StrFormat("%.4g GiB", point.gib),
               Percent(point.hit_rate, 1), Percent(point.belady_hit_rate, 1)});
  }
  return table.Text();
}

std::string DemoPoliciesText(const DemoResult& result) {
  Table table({"policy", "requests at once", "used", "wasted"});
  for (const FragmentationRow& row : result.policies) {
    table.Add({std::string(PolicyName(row.policy)),
               absl::StrFormat("%.1f", row.mean_running),
               Percent(row.of_allocated.live, 1),
               Percent(1 - row.of_allocated.live, 1)});
  }
  return table.Text();
}

std::string DemoServingText(const DemoResult& result,
                            const DemoServingOptions& options) {
  Table table({"", "nothing shared", "prefix shared"});
  const DemoServingResult& alone = result.alone;
  const DemoServingResult& shared = result.shared;
  const auto row = [&table](const std::string& name, const std::string& a,
                            const std::string& b) {
    table.Add({name, a, b});
  };
  row("prompt tokens computed", Grouped(alone.computed_prompt_tokens),
      Grouped(shared.computed_prompt_tokens));
  row("KV memory at most", absl::StrFormat("%.1f MiB", PeakMiB(alone)),
      absl::StrFormat("%.1f MiB", PeakMiB(shared)));
  row("prefill", absl::StrFormat("%.2f s", alone.prefill_seconds),
      absl::StrFormat("%.2f s", shared.prefill_seconds));
  const auto rate = [](const DemoServingResult& r) {
    return absl::StrFormat("%.0f tokens/s",
                           static_cast<double>(r.decode_tokens) /
                               std::max(r.decode_seconds, 1e-9));
  };
  row("decode", rate(alone), rate(shared));
  row("largest attention error",
      absl::StrFormat("%.1e", alone.max_attention_error),
      absl::StrFormat("%.1e", shared.max_attention_error));
  return absl::StrCat(table.Text(), "The ", options.requests, " answers of ",
                      options.output_tokens, " tokens are ",
                      result.SameAnswers() ? "the same" : "DIFFERENT",
                      " in both.\n");
}

std::string DemoSummaryText(const DemoResult& result) {
  const FragmentationRow& contiguous = RowOf(result, PolicyKind::kContiguous);
  const FragmentationRow& paged = RowOf(result, PolicyKind::kPaged);
  Table table({"", "without", "with PagedKV"});
  table.Add({"requests at once in the same memory",
             absl::StrFormat("%.1f", contiguous.mean_running),
             absl::StrFormat("%.1f", paged.mean_running)});
  table.Add({"KV memory wasted", Percent(1 - contiguous.of_allocated.live),
             Percent(1 - paged.of_allocated.live)});
  table.Add({absl::StrFormat("prompt tokens found in %.4g GiB",
                             result.cache.back().gib),
             "0 %", Percent(result.cache.back().hit_rate, 1)});
  table.Add({"prompt tokens computed for the batch",
             Grouped(result.alone.computed_prompt_tokens),
             Grouped(result.shared.computed_prompt_tokens)});
  table.Add({"KV memory of the batch",
             absl::StrFormat("%.1f MiB", PeakMiB(result.alone)),
             absl::StrFormat("%.1f MiB", PeakMiB(result.shared))});
  return table.Text();
}

ordered_json DemoJson(const DemoResult& result, uint64_t seed) {
  ordered_json json = ReportHeader("demo", seed, result.trace);
  json["requests_total"] = result.trace.requests.size();
  json["cache_sizes"] = ordered_json::array();
  for (const DemoCachePoint& point : result.cache) {
    json["cache_sizes"].push_back({{"gib", point.gib},
                                   {"hit_rate", point.hit_rate},
                                   {"belady_hit_rate", point.belady_hit_rate}});
  }
  json["policies"] = ordered_json::array();
  for (const FragmentationRow& row : result.policies) {
    json["policies"].push_back(
        {{"policy", std::string(PolicyName(row.policy))},
         {"mean_running", row.mean_running},
         {"effective_utilisation", row.of_allocated.live},
         {"waste", WasteJson(row.of_allocated)}});
  }
  json["serving"] = {{"shared", ServingJson(result.shared)},
                     {"alone", ServingJson(result.alone)},
                     {"same_answers", result.SameAnswers()}};
  return json;
}

}  // namespace paged_kv::tool
