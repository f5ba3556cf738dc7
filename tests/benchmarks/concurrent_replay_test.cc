// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/concurrent_replay.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/step_time_model.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/unbounded_pool.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

Trace MakeTrace(const std::vector<std::pair<uint32_t, uint32_t>>& lengths) {
  Trace trace;
  for (const auto& [prompt, output] : lengths) {
    Request request;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    trace.requests.push_back(request);
  }
  return trace;
}

absl::StatusOr<ReplayResult> Replay(const Trace& trace, PolicyKind kind,
                                    uint64_t slots,
                                    const ServingOptions& options = {}) {
  PolicyOptions policy;
  policy.kind = kind;
  policy.capacity_slots = slots;
  Progress progress(nullptr);
  const auto memory = MakeMemoryPolicy(policy, trace);
  if (!memory.ok()) return memory.status();
  return ReplayConcurrently(trace, options, **memory, progress);
}

absl::Duration StepOf(uint64_t context, uint64_t new_tokens) {
  StepWork work;
  work.Add(context, new_tokens);
  return StepTime(StepTimeModel(), work);
}

TEST(ConcurrentReplayTest, OneRequestTakesItsStepsAndNoMore) {
  ServingOptions options;
  options.step_tokens = 60;
  const auto result =
      Replay(MakeTrace({{100, 3}}), PolicyKind::kCells, 1000, options);
  ASSERT_TRUE(result.ok()) << result.status();
  // 60 and 40 prompt tokens, then three tokens one by one.
  EXPECT_EQ(result->usage.steps(), 5u);
  const absl::Duration prefill = StepOf(0, 60) + StepOf(60, 40);
  EXPECT_EQ(result->outcomes[0].first_token, prefill);
  EXPECT_EQ(result->duration,
            prefill + StepOf(100, 1) + StepOf(101, 1) + StepOf(102, 1));
  EXPECT_EQ(result->outcomes[0].final_slots.live, 103u);
}

TEST(ConcurrentReplayTest, IdleTimeIsSkipped) {
  Trace trace = MakeTrace({{10, 0}, {10, 0}});
  trace.requests[1].arrival = absl::Hours(2);
  const auto result = Replay(trace, PolicyKind::kCells, 1000);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcomes[1].admitted, absl::Hours(2));
  EXPECT_EQ(result->duration, absl::Hours(2) + StepOf(0, 10));
  EXPECT_DOUBLE_EQ(result->usage.MeanRunning(), 1.0);
}

TEST(ConcurrentReplayTest, MemoryDecidesHowManyRun) {
  const Trace trace = MakeTrace({{10, 90}, {10, 90}, {10, 90}, {10, 90}});
  const auto reserved = Replay(trace, PolicyKind::kContiguous, 250);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_EQ(reserved->usage.peak_running(), 2u);
  EXPECT_EQ(reserved->preemptions, 0u);
  EXPECT_EQ(reserved->Completed(), 4u);
  const auto paged = Replay(trace, PolicyKind::kPagedNoShare, 250);
  ASSERT_TRUE(paged.ok()) << paged.status();
  EXPECT_EQ(paged->usage.peak_running(), 4u);
  EXPECT_GT(paged->preemptions, 0u);
  EXPECT_EQ(paged->Completed(), 4u);
}

// The latest admitted gives way, and only it.
TEST(ConcurrentReplayTest, PreemptsTheLatest) {
  const auto result =
      Replay(MakeTrace({{50, 30}, {40, 20}}), PolicyKind::kCells, 100);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcomes[0].preemptions, 0u);
  EXPECT_EQ(result->outcomes[1].preemptions, 1u);
  EXPECT_LT(result->outcomes[0].finished, result->outcomes[1].finished);
  // The pool is full with 55 + 45 tokens; the growth of the first takes 45.
  EXPECT_EQ(result->recomputed_tokens, 45u);
  EXPECT_EQ(result->outcomes[1].final_slots.live, 60u);
}

TEST(ConcurrentReplayTest, RefusesWhatNeverFitsAndServesTheRest) {
  const auto result =
      Replay(MakeTrace({{50, 30}, {90, 20}, {5, 5}}), PolicyKind::kCells, 100);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Completed(), 2u);
  EXPECT_EQ(result->NeverFits(), 1u);
  EXPECT_FALSE(result->outcomes[1].completed);
  EXPECT_EQ(result->prompt_tokens, 55u);
}

Trace RandomTrace(uint64_t seed) {
  Random random(seed);
  std::vector<std::pair<uint32_t, uint32_t>> lengths;
  for (int i = 0; i < 120; ++i) {
    lengths.emplace_back(1 + random.Below(300), random.Below(120));
  }
  Trace trace = MakeTrace(lengths);
  trace.hash_block_tokens = 16;
  trace.distinct_hash_ids = 40;
  absl::Duration now;
  for (Request& request : trace.requests) {
    request.arrival = now;
    now += absl::Milliseconds(random.Below(200));
    for (uint32_t at = 0; at < request.prompt_tokens; at += 16) {
      request.hash_ids.push_back(random.Chance(800) ? at / 16
                                                    : random.Below(40));
    }
  }
  return trace;
}

TEST(ConcurrentReplayTest, EveryPolicyServesEveryoneInTightPools) {
  for (const PolicyKind kind : AllPolicies()) {
    uint64_t preemptions = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(testing::Message() << PolicyName(kind) << ", seed " << seed);
      const Trace trace = RandomTrace(seed);
      // Two of the longest fit; one page set of the large pages is 2,048.
      const uint64_t slots = kind == PolicyKind::kLargePages ? 4096 : 1024;
      ServingOptions options;
      options.max_running = 20;
      options.step_tokens = 256;
      const auto result = Replay(trace, kind, slots, options);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->Completed(), trace.requests.size());
      EXPECT_LE(result->usage.peak_running(), 20u);
      preemptions += result->preemptions;
      for (size_t i = 0; i < trace.requests.size(); ++i) {
        const RequestOutcome& o = result->outcomes[i];
        ASSERT_EQ(o.final_slots.live, trace.requests[i].total_tokens());
        ASSERT_GE(o.admitted, trace.requests[i].arrival);
        ASSERT_GT(o.first_token, o.admitted);
        ASSERT_GE(o.finished, o.first_token);
      }
      EXPECT_EQ(result->hit_tokens > 0, kind == PolicyKind::kPaged);
    }
    const bool reserves =
        kind == PolicyKind::kContiguous || kind == PolicyKind::kOracle;
    EXPECT_EQ(preemptions == 0, reserves || kind == PolicyKind::kLargePages)
        << PolicyName(kind) << " " << preemptions;
  }
}

TEST(ConcurrentReplayTest, UnboundedPoolsAreNeverTooSmall) {
  for (const PolicyKind kind : AllPolicies()) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(testing::Message() << PolicyName(kind) << ", seed " << seed);
      const Trace trace = RandomTrace(seed);
      ServingOptions options;
      options.max_running = 16;
      options.ignore_arrivals = true;
      const auto result =
          Replay(trace, kind, UnboundedSlots(trace, kind, 16, 16), options);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->Completed(), trace.requests.size());
      EXPECT_EQ(result->preemptions, 0u);
      EXPECT_EQ(result->evicted_blocks, 0u);
      EXPECT_EQ(result->usage.peak_running(), 16u);
    }
  }
}

}  // namespace
}  // namespace paged_kv::tool
