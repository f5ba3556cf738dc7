// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replays against arrival times with the project's own scheduler.

#include "benchmarks/tool/scheduler_replay.h"

#include <cstdint>

#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_runner.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/workload.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/shared_traces.h"

namespace paged_kv::tool {
namespace {

ReplayOptions TraceOptions() {
  ReplayOptions options;
  options.concurrency = Concurrency::kTrace;
  options.sensitivity = false;
  return options;
}

absl::StatusOr<ReplaySummary> Replay(const Trace& trace,
                                     const ReplayOptions& options) {
  Progress progress(nullptr);
  return RunReplay(trace, options, progress);
}

// A request's own K/V at its end: prompt and output but the last token, which
// nobody attends to.
void ExpectAllServed(const Trace& trace, const ReplaySummary& summary) {
  ASSERT_EQ(summary.result.outcomes.size(), trace.requests.size());
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const Request& r = trace.requests[i];
    const RequestOutcome& o = summary.result.outcomes[i];
    ASSERT_TRUE(o.completed) << i;
    ASSERT_EQ(o.final_slots.live,
              r.total_tokens() - (r.output_tokens > 0 ? 1 : 0));
    ASSERT_LT(o.final_slots.tail, summary.options.block_tokens);
    ASSERT_EQ(o.final_slots.Allocated() % summary.options.block_tokens, 0u);
    ASSERT_GE(o.admitted, r.arrival);
    ASSERT_GE(o.finished, o.admitted);
  }
}

TEST(SchedulerReplayTest, GeneratedWorkloadsInEveryPool) {
  for (const WorkloadProfile profile :
       {WorkloadProfile::kMooncakeConversation,
        WorkloadProfile::kAzureConversation, WorkloadProfile::kAzureCode}) {
    WorkloadOptions workload;
    workload.profile = profile;
    workload.requests = 300;
    const Trace trace = GenerateWorkload(workload);
    for (const double fraction : {0.0, 1.0, 0.5}) {
      SCOPED_TRACE(testing::Message()
                   << WorkloadName(profile) << ", pool " << fraction);
      ReplayOptions options = TraceOptions();
      options.pool_fraction = fraction;
      const auto summary = Replay(trace, options);
      ASSERT_TRUE(summary.ok()) << summary.status();
      ExpectAllServed(trace, *summary);
      EXPECT_LE(summary->result.HitRate(), 1);
      EXPECT_EQ(summary->unbounded, fraction == 0);
    }
  }
}

TEST(SchedulerReplayTest, SharingSavesWorkAndMemory) {
  WorkloadOptions workload;
  workload.requests = 600;
  const Trace trace = GenerateWorkload(workload);
  ReplayOptions options = TraceOptions();
  const auto shared = Replay(trace, options);
  options.policy = PolicyKind::kPagedNoShare;
  const auto alone = Replay(trace, options);
  ASSERT_TRUE(shared.ok()) << shared.status();
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_GT(shared->result.hit_tokens, 0u);
  EXPECT_EQ(alone->result.hit_tokens, 0u);
  EXPECT_LT(shared->result.duration, alone->result.duration);
  EXPECT_FALSE(alone->belady_hit_rate.has_value());
}

TEST(SchedulerReplayTest, RefusesWhatNeverFits) {
  WorkloadOptions workload;
  workload.requests = 200;
  const Trace trace = GenerateWorkload(workload);
  ReplayOptions options = TraceOptions();
  options.pool_blocks = 1000;
  const auto summary = Replay(trace, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  for (size_t i = 0; i < trace.requests.size(); ++i) {
    const Request& r = trace.requests[i];
    const uint32_t computed = r.total_tokens() - (r.output_tokens > 0 ? 1 : 0);
    EXPECT_EQ(summary->result.outcomes[i].completed, computed <= 16000);
  }
  EXPECT_GT(summary->result.NeverFits(), 0u);
}

TEST(SchedulerReplayTest, SensitivityHasARowPerChange) {
  WorkloadOptions workload;
  workload.requests = 100;
  const Trace trace = GenerateWorkload(workload);
  ReplayOptions options = TraceOptions();
  options.sensitivity = true;
  const auto summary = Replay(trace, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  ASSERT_EQ(summary->sensitivity.size(), 5u);
  // Half the arithmetic lets the first tokens wait longer, twice less.
  const double documented = summary->sensitivity[0].first_token_seconds_p50;
  EXPECT_EQ(summary->sensitivity[1].change, "flops_per_second x 0.5");
  EXPECT_GT(summary->sensitivity[1].first_token_seconds_p50, documented);
  EXPECT_LT(summary->sensitivity[2].first_token_seconds_p50, documented);
}

TEST(SchedulerReplayTest, AzureConversationUtilisation) {
  PAGED_KV_NEEDS_TRACE(path, kConversationTrace);
  const Trace trace = ReadSharedTrace(path);
  const auto summary = Replay(trace, TraceOptions());
  ASSERT_TRUE(summary.ok()) << summary.status();
  ExpectAllServed(trace, *summary);
  EXPECT_GE(summary->result.usage.EffectiveUtilisation(), 0.98);
}

TEST(SchedulerReplayTest, MooncakeInATenthOfItsPeakDemand) {
  PAGED_KV_NEEDS_TRACE(path, kMooncakeTrace);
  const Trace trace = ReadSharedTrace(path);
  ReplayOptions options = TraceOptions();
  options.pool_fraction = 0.1;
  const auto summary = Replay(trace, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  ExpectAllServed(trace, *summary);
  EXPECT_NEAR(static_cast<double>(summary->pool_blocks),
              0.1 * static_cast<double>(summary->peak_demand_blocks), 1);
  EXPECT_GE(summary->result.usage.EffectiveUtilisation(), 0.98);
}

}  // namespace
}  // namespace paged_kv::tool
