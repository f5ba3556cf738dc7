// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_comparison.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/prompt_trie.h"

namespace paged_kv::tool {
namespace {

const ServeResult* Find(absl::Span<const ServeResult> results,
                        Batching batching, bool sharing) {
  for (const ServeResult& result : results) {
    if (result.batching == batching && result.prefix_sharing == sharing &&
        !result.interrupted) {
      return &result;
    }
  }
  return nullptr;
}

absl::optional<double> Ratio(double a, double b) {
  if (a > 0 && b > 0) return a / b;
  return absl::nullopt;
}

absl::optional<double> Throughputs(absl::Span<const ServeResult> results,
                                   Batching above, Batching below) {
  for (const bool sharing : {true, false}) {
    const ServeResult* a = Find(results, above, sharing);
    const ServeResult* b = Find(results, below, sharing);
    if (a == nullptr || b == nullptr) continue;
    return Ratio(a->stats.OutputTokensPerSecond(),
                 b->stats.OutputTokensPerSecond());
  }
  return absl::nullopt;
}

double MeanFirstTokenOfLaterOnes(const ServeResult& result) {
  double sum = 0, count = 0;
  for (size_t i = 1; i < result.requests.size(); ++i) {
    if (!result.requests[i].HasOutput()) continue;
    sum += result.requests[i].TimeToFirstToken();
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

nlohmann::ordered_json NumberOrNull(const absl::optional<double>& value) {
  if (!value) return nullptr;
  return *value;
}

}  // namespace

ServeComparison CompareRuns(absl::Span<const ServeResult> results) {
  ServeComparison comparison;
  comparison.dynamic_over_static =
      Throughputs(results, Batching::kDynamic, Batching::kStatic);
  comparison.dynamic_over_none =
      Throughputs(results, Batching::kDynamic, Batching::kNone);
  for (const Batching batching :
       {Batching::kDynamic, Batching::kStatic, Batching::kNone}) {
    const ServeResult* shared = Find(results, batching, true);
    const ServeResult* apart = Find(results, batching, false);
    if (shared == nullptr || apart == nullptr) continue;
    comparison.first_token_gain = Ratio(MeanFirstTokenOfLaterOnes(*apart),
                                        MeanFirstTokenOfLaterOnes(*shared));
    break;
  }
  return comparison;
}

uint64_t IdealPrefillTokens(absl::Span<const ServeRequest> requests) {
  PromptTrie trie;
  uint64_t total = 0;
  for (const ServeRequest& request : requests) {
    uint64_t computed = 0;
    uint32_t node = PromptTrie::kRoot;
    for (const TokenId token : request.prompt.tokens) {
      const auto [child, is_new] =
          trie.Child(node, static_cast<uint32_t>(token));
      node = child;
      if (is_new) ++computed;
    }
    total += std::max<uint64_t>(computed, 1);
  }
  return total;
}

uint64_t PrefillTokens(absl::Span<const ServeRequest> requests,
                       const ServeResult& result) {
  uint64_t total = result.stats.scheduler.recomputed_tokens;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!result.requests[i].HasOutput()) continue;
    total +=
        requests[i].prompt.tokens.size() - result.requests[i].cached_tokens;
  }
  return total;
}

std::string ComparisonText(const ServeComparison& comparison) {
  std::string text;
  if (comparison.dynamic_over_static) {
    absl::StrAppendFormat(&text,
                          "dynamic batching gives %.2f times the tokens per "
                          "second of static batching\n",
                          *comparison.dynamic_over_static);
  }
  if (comparison.dynamic_over_none) {
    absl::StrAppendFormat(&text,
                          "dynamic batching gives %.2f times the tokens per "
                          "second of one request at a time\n",
                          *comparison.dynamic_over_none);
  }
  if (comparison.first_token_gain) {
    absl::StrAppendFormat(&text,
                          "all but the first request have their first token "
                          "%.1f times as soon with sharing as without\n",
                          *comparison.first_token_gain);
  }
  return text;
}

nlohmann::ordered_json ComparisonJson(const ServeComparison& comparison) {
  return {{"dynamic_over_static", NumberOrNull(comparison.dynamic_over_static)},
          {"dynamic_over_none", NumberOrNull(comparison.dynamic_over_none)},
          {"first_token_gain", NumberOrNull(comparison.first_token_gain)}};
}

}  // namespace paged_kv::tool
