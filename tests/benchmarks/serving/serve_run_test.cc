// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_run.h"

#include <algorithm>
#include <vector>

#include "benchmarks/tool/serving/serve_report.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/serving/serving_test_model.h"

namespace paged_kv::tool {
namespace {

ServeRequests Requests(const LoadedModel& model) {
  ServeWorkload workload;
  workload.trace.requests = 24;
  workload.shared_prefix = 32;
  workload.max_prompt_tokens = 40;
  workload.max_output_tokens = 20;
  auto made = MakeServeRequests(workload, model, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(ServeRunTest, EveryWayOfBatchingGivesTheSameAnswers) {
  LoadedModel model = TinyModel();
  const ServeRequests requests = Requests(model);
  std::vector<ServeResult> results;
  for (const Batching batching :
       {Batching::kNone, Batching::kStatic, Batching::kDynamic}) {
    ServeOptions options;
    options.cache.dtype = DType::kF32;
    options.batching = batching;
    options.batch = 4;
    options.step_tokens = 32;
    auto result = Serve(model, requests.requests, options, {}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*std::move(result));
  }
  for (const ServeResult& result : results) {
    for (size_t i = 0; i < requests.requests.size(); ++i) {
      const ServedRequest& served = result.requests[i];
      EXPECT_EQ(served.output, results[0].requests[i].output);
      EXPECT_EQ(served.output.size(), requests.requests[i].max_tokens);
      EXPECT_EQ(served.reason, FinishReason::kMaxTokens);
      EXPECT_GE(served.TimeToFirstToken(), 0);
      EXPECT_GE(served.finished_s, served.first_token_s);
    }
    // All but the first find the common beginning, whole blocks of it, unless
    // they were admitted while it was being computed.
    EXPECT_GT(Summarise(result).cached_tokens, 0u);
    EXPECT_EQ(Summarise(result).answered, requests.requests.size());
  }
  // One at a time takes a step per token; together they share steps.
  EXPECT_GT(results[0].stats.engine.steps, results[1].stats.engine.steps);
  EXPECT_GT(results[1].stats.engine.steps, results[2].stats.engine.steps);
}

TEST(ServeRunTest, SpeculationGivesTheSameAnswersInFewerSteps) {
  LoadedModel model = TinyModel();
  const ServeRequests requests = Requests(model);
  std::vector<ServeResult> results;
  for (const uint32_t drafts : {0u, 5u}) {
    ServeOptions options;
    options.cache.dtype = DType::kF32;
    options.batch = 2;
    options.draft_tokens = drafts;
    auto result = Serve(model, requests.requests, options, {}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*std::move(result));
  }
  for (size_t i = 0; i < requests.requests.size(); ++i) {
    EXPECT_EQ(results[0].requests[i].output, results[1].requests[i].output);
  }
  EXPECT_LT(results[1].stats.engine.steps, results[0].stats.engine.steps);
  EXPECT_GT(results[1].stats.AcceptedShare(), 0);
  EXPECT_EQ(results[0].stats.scheduler.drafted_tokens, 0u);
}

// Pools in which a few run at once, keeping room for 64 tokens of growth each,
// but not until all are done.
TEST(ServeRunTest, PreemptionChangesNoAnswer) {
  LoadedModel model = TinyModel();
  std::vector<ServeRequest> requests(12);
  for (size_t i = 0; i < requests.size(); ++i) {
    for (size_t j = 0; j < 36; ++j) {
      const size_t token = j < 32 ? 7 * j : 11 * i + j;
      requests[i].prompt.tokens.push_back(static_cast<TokenId>(token % 97));
    }
    requests[i].max_tokens = 90;
  }
  ServeOptions options;
  options.cache.dtype = DType::kF32;
  options.cache.block_tokens = 4;
  options.batch = 12;
  const auto ample = Serve(model, requests, options, {}, {});
  ASSERT_TRUE(ample.ok()) << ample.status();
  EXPECT_EQ(ample->stats.scheduler.preemptions, 0u);
  for (const Preemption preemption :
       {Preemption::kRecompute, Preemption::kSwap, Preemption::kAuto}) {
    options.preemption = preemption;
    uint64_t preemptions = 0;
    for (const uint32_t blocks : {44u, 49u, 55u, 62u, 70u, 80u, 95u}) {
      SCOPED_TRACE(blocks);
      options.cache.blocks = blocks;
      const auto tight = Serve(model, requests, options, {}, {});
      ASSERT_TRUE(tight.ok()) << tight.status();
      const BatchSchedulerStats& stats = tight->stats.scheduler;
      preemptions += stats.preemptions;
      // So small a model is always moved rather than run.
      const bool swaps = preemption != Preemption::kRecompute;
      EXPECT_EQ(stats.swap_outs, swaps ? stats.preemptions : 0u);
      EXPECT_EQ(stats.swap_ins > 0, swaps);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(tight->requests[i].output, ample->requests[i].output);
        EXPECT_EQ(tight->requests[i].output.size(), 90u);
      }
    }
    EXPECT_GT(preemptions, 0u) << static_cast<int>(preemption);
  }
}

TEST(ServeRunTest, OneThatNeverFitsDoesNotStopTheOthers) {
  LoadedModel model = TinyModel();
  ServeRequests requests = Requests(model);
  ServeOptions options;
  options.cache.blocks = 5;  // 80 tokens
  requests.requests[3].prompt.tokens.assign(100, 1);
  const auto result = Serve(model, requests.requests, options, {}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->requests[3].error.empty());
  EXPECT_FALSE(result->requests[3].HasOutput());
  for (size_t i = 0; i < requests.requests.size(); ++i) {
    const uint64_t needed = requests.requests[i].prompt.tokens.size() +
                            requests.requests[i].max_tokens;
    if (needed > 80) continue;
    EXPECT_EQ(result->requests[i].output.size(),
              requests.requests[i].max_tokens);
  }
}

TEST(ServeRunTest, AnInterruptEndsWithWhatIsThere) {
  LoadedModel model = TinyModel();
  const ServeRequests requests = Requests(model);
  int steps = 0;
  const auto result =
      Serve(model, requests.requests, {}, [&] { return ++steps > 5; }, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_LT(Summarise(*result).answered, requests.requests.size());
  EXPECT_TRUE(std::any_of(
      result->requests.begin(), result->requests.end(),
      [](const auto& r) { return r.reason == FinishReason::kCancelled; }));
}

TEST(ServeRunTest, QuantilesAreOfTheValues) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Distribution d = DistributionOf(values);
  EXPECT_EQ(d.p50, 50);
  EXPECT_EQ(d.p90, 90);
  EXPECT_EQ(d.p99, 99);
  EXPECT_EQ(d.max, 100);
  EXPECT_EQ(d.mean, 50.5);
  EXPECT_EQ(DistributionOf({7}).p50, 7);
  EXPECT_EQ(DistributionOf({}).max, 0);
}

}  // namespace
}  // namespace paged_kv::tool
