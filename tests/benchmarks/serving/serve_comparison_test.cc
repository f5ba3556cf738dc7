// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_comparison.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/serving/serving_test_model.h"

namespace paged_kv::tool {
namespace {

ServeRequest Prompt(std::vector<TokenId> tokens) {
  ServeRequest request;
  request.prompt.tokens = std::move(tokens);
  return request;
}

// Answers of `tokens` tokens in `seconds`; the first token of request i comes
// after first_token_s[i], 0: never.
ServeResult Served(Batching batching, bool sharing, uint64_t tokens,
                   double seconds, std::vector<double> first_token_s) {
  ServeResult result;
  result.batching = batching;
  result.prefix_sharing = sharing;
  result.stats.scheduler.output_tokens = tokens;
  result.stats.wall_s = seconds;
  for (const double first : first_token_s) {
    ServedRequest request;
    request.arrival_s = 10;
    request.first_token_s = 10 + first;
    if (first > 0) request.output = {1, 2};
    result.requests.push_back(request);
  }
  return result;
}

TEST(ServeComparisonTest, RatiosAreOfTheRunsThatBelongTogether) {
  const std::vector<ServeResult> runs = {
      Served(Batching::kStatic, true, 300, 3, {1}),
      Served(Batching::kDynamic, true, 300, 2, {9, 2, 4, 0}),
      Served(Batching::kDynamic, false, 300, 20, {1, 10, 26, 0})};
  const ServeComparison comparison = CompareRuns(runs);
  EXPECT_DOUBLE_EQ(comparison.dynamic_over_static.value(), 1.5);
  EXPECT_FALSE(comparison.dynamic_over_none.has_value());
  EXPECT_DOUBLE_EQ(comparison.first_token_gain.value(), 18.0 / 3);
  EXPECT_TRUE(absl::StrContains(ComparisonText(comparison), "1.50 times"));
  EXPECT_TRUE(absl::StrContains(ComparisonText(comparison), "6.0 times"));
  const auto json = ComparisonJson(comparison);
  EXPECT_DOUBLE_EQ(json["first_token_gain"].get<double>(), 6);
  EXPECT_TRUE(json["dynamic_over_none"].is_null());
}

TEST(ServeComparisonTest, NothingIsSaidOfRunsThatAreNotThere) {
  EXPECT_EQ(ComparisonText(CompareRuns({})), "");
  // Sharing differs, so neither ratio is of batching alone.
  std::vector<ServeResult> runs = {
      Served(Batching::kStatic, false, 300, 3, {1, 1}),
      Served(Batching::kDynamic, true, 300, 2, {1, 1})};
  EXPECT_EQ(ComparisonText(CompareRuns(runs)), "");
  runs[0].prefix_sharing = true;
  runs[0].interrupted = true;
  EXPECT_EQ(ComparisonText(CompareRuns(runs)), "");
}

TEST(ServeComparisonTest, TheIdealComputesEachBeginningOnce) {
  EXPECT_EQ(IdealPrefillTokens({}), 0u);
  const std::vector<ServeRequest> requests = {
      Prompt({1, 2, 3, 4}),     // 4
      Prompt({1, 2, 3, 5}),     // the last
      Prompt({1, 2, 3, 4}),     // one of it at least
      Prompt({1, 2}),           // the same
      Prompt({2, 2, 3, 4, 5}),  // all: another beginning
  };
  EXPECT_EQ(IdealPrefillTokens(requests), 4u + 1 + 1 + 1 + 5);
}

TEST(ServeComparisonTest, PrefillTokensAreThoseNotFound) {
  const std::vector<ServeRequest> requests = {
      Prompt({1, 2, 3, 4}), Prompt({1, 2, 3}), Prompt({1, 2, 3, 4, 5, 6})};
  ServeResult result = Served(Batching::kDynamic, true, 3, 1, {1, 0, 1});
  result.requests[2].cached_tokens = 4;
  EXPECT_EQ(PrefillTokens(requests, result), 4u + 2);
  result.stats.scheduler.recomputed_tokens = 7;
  EXPECT_EQ(PrefillTokens(requests, result), 13u);
}

// Whole blocks of 16 in common: sharing computes no more than the ideal.
TEST(ServeComparisonTest, SharingReachesTheIdeal) {
  LoadedModel model = TinyModel();
  ServeWorkload workload;
  workload.trace.requests = 12;
  workload.shared_prefix = 64;
  workload.max_prompt_tokens = 8;
  workload.max_output_tokens = 4;
  const auto made = MakeServeRequests(workload, model, {});
  ASSERT_TRUE(made.ok()) << made.status();
  ServeOptions options;
  options.batch = 12;
  const uint64_t ideal = IdealPrefillTokens(made->requests);
  const auto shared = Serve(model, made->requests, options, {}, {});
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_LE(PrefillTokens(made->requests, *shared), ideal + ideal / 50);
  options.cache.prefix_caching = false;
  const auto apart = Serve(model, made->requests, options, {}, {});
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_FALSE(apart->prefix_sharing);
  uint64_t all = 0;
  for (const ServeRequest& request : made->requests) {
    all += request.prompt.tokens.size();
  }
  EXPECT_EQ(PrefillTokens(made->requests, *apart), all);
}

}  // namespace
}  // namespace paged_kv::tool
