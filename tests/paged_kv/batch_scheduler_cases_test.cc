// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures seen in other schedulers.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

// A client disconnects; the preemption of its group later meets the freed
// member.
TEST(CasesTest, A8_PreemptionSkipsMembersOfAGroupThatAreGone) {
  SchedulerRig rig(SmallCache(10, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 30).ok());
  TestRequest group = SchedulerRig::Request(2, 8, 16);
  group.samples = 2;
  ASSERT_TRUE(rig.Submit(group).ok());
  rig.Step();
  EXPECT_EQ(Show(rig.Step()), "1:8+1>1 2:8+1>1 2.1:8+1>1");

  ASSERT_TRUE(rig->Finish(RequestId(2), 1).ok());
  rig.Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Finish(RequestId(2), 1)));
  // Request 1 grows until the group has to give way.
  while (rig->Stats().preemptions == 0) ASSERT_FALSE(rig.Step().empty());
  const RequestProgress progress = *rig->Progress(RequestId(2));
  EXPECT_EQ(progress.samples_waiting, 1u);
  EXPECT_EQ(progress.samples_running, 0u);
  EXPECT_EQ(progress.samples_ended, 1u);

  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[1].id, RequestId(2));
  EXPECT_EQ(finished[1].samples[0].reason, FinishReason::kMaxTokens);
  EXPECT_EQ(finished[1].Output(0).size(), 16u);
  EXPECT_EQ(finished[1].samples[1].reason, FinishReason::kStopped);
  EXPECT_EQ(finished[1].Output(1).size(), 2u);
}

// And the same with the whole group gone, preempted members included.
TEST(CasesTest, A8_AGroupIsCancelledWhilePartOfItIsPreempted) {
  SchedulerRig rig(SmallCache(10, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 30).ok());
  TestRequest group = SchedulerRig::Request(2, 8, 16);
  group.samples = 2;
  ASSERT_TRUE(rig.Submit(group).ok());
  while (rig->Stats().preemptions == 0) ASSERT_FALSE(rig.Step().empty());
  EXPECT_EQ(rig->Progress(RequestId(2))->samples_waiting, 1u);
  EXPECT_EQ(rig->Progress(RequestId(2))->samples_running, 1u);
  ASSERT_TRUE(rig->Cancel(RequestId(2)).ok());
  rig.Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Cancel(RequestId(2))));
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

// A prompt within the longest length but larger than the pool waits for ever
// and blocks the queue.
TEST(CasesTest, C1_WhatNeverFitsIsRefusedAtOnce) {
  SchedulerRig rig(SmallCache(4, 16), PlainOptions());
  const absl::Status never = rig.Submit(1, 100, 1);
  EXPECT_TRUE(absl::IsOutOfRange(never)) << never;
  EXPECT_NE(never.message().find("need 7 blocks"), std::string::npos) << never;
  // A prompt that fits with an output that does not is no better.
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(2, 60, 6)));
  // This one fits, to the last slot, and nobody is in its way.
  ASSERT_TRUE(rig.Submit(3, 60, 5).ok());
  ASSERT_TRUE(rig.Submit(4, 64, 0).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(CasesTest, C1_TheWatermarkCounts) {
  KvCacheOptions cache = SmallCache(4, 16);
  cache.watermark_blocks = BlockCount(1);
  SchedulerRig rig(cache, PlainOptions());
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(1, 48, 2)));
  ASSERT_TRUE(rig.Submit(2, 48, 1).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

void RunThreeOfSixtyPerCent(uint32_t steps_in_flight, uint32_t growth_reserve) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = steps_in_flight;
  options.growth_reserve_tokens = growth_reserve;
  SchedulerRig rig(SmallCache(10, 4), options);
  // 8 + 16 stored tokens: 6 of 10 blocks.
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(rig.Submit(id, 8, 17).ok());
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(finished[i].id, RequestId(i + 1)) << "older first";
    EXPECT_EQ(finished[i].Output(0).size(), 17u);
  }
  EXPECT_EQ(finished[0].costs.preemptions, 0u);
  EXPECT_LE(finished[1].costs.preemptions, 2u);
  EXPECT_LE(finished[2].costs.preemptions, 3u);
  // Most of what was thrown out was still in the cache.
  EXPECT_LE(rig->Stats().recomputed_tokens, 40u);
}

// Three requests, each of which needs 60 % of the pool, throw each other out
// over and over.
TEST(CasesTest, C3_ThreeOfSixtyPerCentAllComplete) {
  for (uint32_t steps_in_flight : {1, 2}) {
    for (uint32_t growth_reserve : {0, 1, 64}) {
      SCOPED_TRACE(absl::StrCat(steps_in_flight, " steps in flight, reserve ",
                                growth_reserve));
      RunThreeOfSixtyPerCent(steps_in_flight, growth_reserve);
    }
  }
}

// Output length 0 warms the cache.
TEST(CasesTest, C10_NoOutputOnlyWarmsTheCache) {
  for (uint32_t samples : {1, 3}) {
    SchedulerRig rig(SmallCache(8, 16), PlainOptions());
    TestRequest request = SchedulerRig::Request(1, 32, 0);
    request.samples = samples;
    ASSERT_TRUE(rig.Submit(request).ok());
    EXPECT_EQ(Show(rig.Step()), "1:0+32");
    EXPECT_TRUE(rig.Step().empty());
    const std::vector<FinishedRequest> finished = rig.RunToEnd();
    ASSERT_EQ(finished.size(), 1u);
    EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kMaxTokens);
    EXPECT_EQ(finished[0].Output(0).size(), 0u);
    const CacheStats stats = rig.cache().Stats();
    EXPECT_EQ(stats.blocks_taken, 2u) << "a block for output was taken";
    EXPECT_EQ(stats.pools[0].cached, BlockCount(2));
    EXPECT_EQ(rig.cache().Lookup(Prompt(1, 40))->hit_tokens, TokenCount(32));
  }
}

}  // namespace
}  // namespace paged_kv
