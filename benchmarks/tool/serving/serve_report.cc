// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/serving/serve_comparison.h"
#include "benchmarks/tool/table.h"

namespace paged_kv::tool {
namespace {

std::string Milliseconds(double seconds) {
  return absl::StrFormat("%.4g", 1e3 * seconds);
}

std::string TextOf(const LoadedModel& model,
                   const std::vector<TokenId>& output) {
  if (model.tokenizer == nullptr) return "";
  return model.tokenizer->Decode(output, /*at_start=*/false);
}

nlohmann::ordered_json DistributionJson(const Distribution& d) {
  return {{"mean", d.mean},
          {"p50", d.p50},
          {"p90", d.p90},
          {"p99", d.p99},
          {"max", d.max}};
}

nlohmann::ordered_json ResultJson(const LoadedModel& model,
                                  const ServeRequests& requests,
                                  const ServeResult& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < result.requests.size(); ++i) {
    const ServedRequest& served = result.requests[i];
    nlohmann::ordered_json row = {
        {"id", requests.requests[i].id},
        {"prompt_tokens", requests.requests[i].prompt.tokens.size()},
        {"cached_tokens", served.cached_tokens},
        {"tokens", served.output},
        {"text", TextOf(model, served.output)},
        {"reason", FinishReasonName(served.reason)},
        {"arrival_s", served.arrival_s}};
    if (served.HasOutput()) {
      row["time_to_first_token_s"] = served.TimeToFirstToken();
      row["time_per_output_token_s"] = served.TimePerOutputToken();
      row["finished_s"] = served.finished_s;
    }
    if (!served.error.empty()) row["error"] = served.error;
    rows.push_back(row);
  }
  const ServeSummary summary = Summarise(result);
  return {{"batching", BatchingName(result.batching)},
          {"prefix_sharing", result.prefix_sharing},
          {"interrupted", result.interrupted},
          {"answered", summary.answered},
          {"time_to_first_token_s", DistributionJson(summary.first_token)},
          {"time_per_output_token_s", DistributionJson(summary.per_token)},
          {"output_tokens_per_s", summary.output_tokens_per_s},
          {"cached_tokens", summary.cached_tokens},
          {"prefill_tokens", PrefillTokens(requests.requests, result)},
          {"stats", ServingStatsJson(result.stats)},
          {"requests", rows}};
}

}  // namespace

Distribution DistributionOf(std::vector<double> values) {
  Distribution d;
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  d.mean = sum / static_cast<double>(values.size());
  // The smallest value that this share of all does not exceed.
  const auto quantile = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  d.p50 = quantile(0.5);
  d.p90 = quantile(0.9);
  d.p99 = quantile(0.99);
  d.max = values.back();
  return d;
}

ServeSummary Summarise(const ServeResult& result) {
  ServeSummary summary;
  std::vector<double> first, per_token;
  for (const ServedRequest& request : result.requests) {
    if (!request.HasOutput()) continue;
    ++summary.answered;
    summary.cached_tokens += request.cached_tokens;
    first.push_back(request.TimeToFirstToken());
    if (request.output.size() > 1) {
      per_token.push_back(request.TimePerOutputToken());
    }
  }
  summary.first_token = DistributionOf(first);
  summary.per_token = DistributionOf(per_token);
  summary.output_tokens_per_s = result.stats.OutputTokensPerSecond();
  return summary;
}

std::string ServeText(absl::Span<const ServeResult> results,
                      const ServeRequests& requests) {
  uint64_t prompt_tokens = 0;
  for (const ServeRequest& request : requests.requests) {
    prompt_tokens += request.prompt.tokens.size();
  }
  std::string text = absl::StrCat(Grouped(requests.requests.size()),
                                  " requests, ", Grouped(prompt_tokens),
                                  " prompt tokens; times in milliseconds\n\n");
  Table table({"batching", "sharing", "answered", "seconds", "output tokens/s",
               "first token p50", "p90", "p99", "per token p50", "p90", "p99",
               "prompt tokens computed"});
  for (const ServeResult& result : results) {
    const ServeSummary s = Summarise(result);
    table.Add({BatchingName(result.batching),
               result.prefix_sharing ? "on" : "off", Grouped(s.answered),
               absl::StrFormat("%.2f", result.stats.wall_s),
               absl::StrFormat("%.1f", s.output_tokens_per_s),
               Milliseconds(s.first_token.p50), Milliseconds(s.first_token.p90),
               Milliseconds(s.first_token.p99), Milliseconds(s.per_token.p50),
               Milliseconds(s.per_token.p90), Milliseconds(s.per_token.p99),
               Grouped(PrefillTokens(requests.requests, result))});
  }
  absl::StrAppend(&text, table.Text(),
                  "\nprompt tokens to compute at least, if no beginning is "
                  "computed twice: ",
                  Grouped(IdealPrefillTokens(requests.requests)), "\n",
                  ComparisonText(CompareRuns(results)), "\n",
                  BatchingName(results.back().batching),
                  " batching: ", ServingStatsText(results.back().stats));
  if (results.back().interrupted) absl::StrAppend(&text, "(interrupted)\n");
  return text;
}

std::string ServeRequestsText(const LoadedModel& model,
                              const ServeRequests& requests,
                              const ServeResult& result) {
  constexpr size_t kShownBytes = 60;
  Table table({"request", "prompt", "found", "output", "first token ms",
               "per token ms", "ended", "text"});
  for (size_t i = 0; i < result.requests.size(); ++i) {
    const ServedRequest& r = result.requests[i];
    std::string text = r.error.empty() ? TextOf(model, r.output) : r.error;
    text = absl::StrReplaceAll(text, {{"\n", "\\n"}, {"\r", "\\r"}});
    if (text.size() > kShownBytes) {
      size_t end = kShownBytes;  // no cut inside a character of UTF-8
      while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
      text = absl::StrCat(text.substr(0, end), "...");
    }
    table.Add({requests.requests[i].id,
               Grouped(requests.requests[i].prompt.tokens.size()),
               Grouped(r.cached_tokens), Grouped(r.output.size()),
               r.HasOutput() ? Milliseconds(r.TimeToFirstToken()) : "-",
               r.output.size() > 1 ? Milliseconds(r.TimePerOutputToken()) : "-",
               FinishReasonName(r.reason), text});
  }
  return table.Text();
}

nlohmann::ordered_json ServeJson(const LoadedModel& model,
                                 const ServeRequests& requests,
                                 absl::Span<const ServeResult> results,
                                 uint64_t seed) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const ServeResult& result : results) {
    runs.push_back(ResultJson(model, requests, result));
  }
  nlohmann::ordered_json bad_lines = nlohmann::ordered_json::array();
  for (const BadLine& bad : requests.bad_lines) {
    bad_lines.push_back({{"line", bad.line}, {"reason", bad.reason}});
  }
  return {{"schema_version", kJsonSchemaVersion},
          {"command", "serve"},
          {"model", model.name},
          {"model_file", model.path},
          {"seed", seed},
          {"trace_sha256", requests.trace_sha256},
          {"bad_lines", bad_lines},
          {"ideal_prefill_tokens", IdealPrefillTokens(requests.requests)},
          {"comparison", ComparisonJson(CompareRuns(results))},
          {"runs", runs}};
}

}  // namespace paged_kv::tool
