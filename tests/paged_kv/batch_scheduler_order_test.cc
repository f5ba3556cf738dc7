// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Who runs in a step: budgets, chunks, order, reserves.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

TEST(BatchSchedulerOrderTest, DecodesComeBeforeChunksBeforeAdmissions) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 4;
  options.max_batch_tokens = 8;
  SchedulerRig rig(SmallCache(64, 4), options);
  ASSERT_TRUE(rig.Submit(1, 3, 9).ok());
  ASSERT_TRUE(rig.Submit(2, 14, 2).ok());
  ASSERT_TRUE(rig.Submit(3, 2, 2).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+3>1 2:0+5");
  EXPECT_EQ(Show(rig.Step()), "1:3+1>1 2:5+7");
  // Request 3 gets what the others leave, and may end its prompt later.
  EXPECT_EQ(Show(rig.Step()), "1:4+1>1 2:12+2>1 3:0+2>1");
  EXPECT_EQ(Show(rig.Step()), "1:5+1>1 2:14+1>1 3:2+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerOrderTest, AChunkIsNoLongerThanAllowed) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_chunk_tokens = 4;
  SchedulerRig rig(SmallCache(64, 4), options);
  ASSERT_TRUE(rig.Submit(1, 9, 1).ok());
  ASSERT_TRUE(rig.Submit(2, 3, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+4 2:0+3>1");
  EXPECT_EQ(Show(rig.Step()), "1:4+4");
  EXPECT_EQ(Show(rig.Step()), "1:8+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerOrderTest, RunsAtMostSoManySequences) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 2;
  SchedulerRig rig(SmallCache(64, 4), options);
  for (uint32_t id : {1, 2, 3}) ASSERT_TRUE(rig.Submit(id, 4, id).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+4>1 2:0+4>1");
  EXPECT_EQ(Show(rig.Step()), "2:4+1>1 3:0+4>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerOrderTest, FirstComeFirstServed) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 1;
  SchedulerRig rig(SmallCache(64, 4), options);
  for (uint64_t id : {5, 3, 9}) ASSERT_TRUE(rig.Submit(id, 4, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "5:0+4>1");
  EXPECT_EQ(Show(rig.Step()), "3:0+4>1");
  EXPECT_EQ(Show(rig.Step()), "9:0+4>1");
}

// Small requests do not slip past a large one that waits for blocks.
TEST(BatchSchedulerOrderTest, NobodyOvertakesWhoWaitsForBlocks) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 16, 3).ok());
  ASSERT_TRUE(rig.Submit(2, 24, 1).ok());
  ASSERT_TRUE(rig.Submit(3, 2, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+16>1");
  EXPECT_EQ(Show(rig.Step()), "1:16+1>1");
  EXPECT_EQ(Show(rig.Step()), "1:17+1>1");
  EXPECT_EQ(Show(rig.Step()), "2:0+24>1 3:0+2>1");
}

// A refusal is remembered so that it need not be repeated in every step, but
// not longer than it is true.
TEST(BatchSchedulerOrderTest, ARefusalHoldsUntilSomethingChanges) {
  for (const bool cancel : {false, true}) {
    SchedulerRig rig(SmallCache(8, 4), PlainOptions());
    ASSERT_TRUE(rig.Submit(1, 16, 5).ok());
    ASSERT_TRUE(rig.Submit(2, 24, 1).ok());
    ASSERT_TRUE(rig.Submit(3, 2, 1).ok());
    EXPECT_EQ(Show(rig.Step()), "1:0+16>1");
    EXPECT_EQ(Show(rig.Step()), "1:16+1>1");
    if (cancel) {
      ASSERT_TRUE(rig->Cancel(RequestId(2)).ok());
      EXPECT_EQ(Show(rig.Step()), "1:17+1>1 3:0+2>1");
    } else {
      TestRequest urgent = SchedulerRig::Request(4, 4, 1);
      urgent.priority = 1;
      ASSERT_TRUE(rig.Submit(urgent).ok());
      EXPECT_EQ(Show(rig.Step()), "1:17+1>1 4:0+4>1");
    }
    rig.RunToEnd();
  }
}

TEST(BatchSchedulerOrderTest, StrictPrioritiesAlwaysGoFirst) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 1;
  options.priority_head_start = absl::InfiniteDuration();
  SchedulerRig rig(SmallCache(64, 4), options);
  const auto submit = [&](uint64_t id, int32_t priority) {
    TestRequest request = SchedulerRig::Request(id, 4, 1);
    request.priority = priority;
    ASSERT_TRUE(rig.Submit(request).ok());
    rig.clock().Advance(absl::Hours(1));
  };
  submit(1, -2);
  submit(2, 0);
  submit(3, 5);
  submit(4, 0);
  submit(5, 5);
  std::string order;
  for (int i = 0; i < 5; ++i) order += Show(rig.Step()) + " ";
  EXPECT_EQ(order, "3:0+4>1 5:0+4>1 2:0+4>1 4:0+4>1 1:0+4>1 ");
}

TEST(BatchSchedulerOrderTest, AHeadStartIsWorthItsTime) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 1;
  options.priority_head_start = absl::Seconds(10);
  SchedulerRig rig(SmallCache(64, 4), options);
  const auto submit = [&](uint64_t id, int32_t priority) {
    TestRequest request = SchedulerRig::Request(id, 4, 1);
    request.priority = priority;
    ASSERT_TRUE(rig.Submit(request).ok());
  };
  submit(1, 0);
  rig.clock().Advance(absl::Seconds(6));
  submit(2, 0);
  rig.clock().Advance(absl::Seconds(5));
  submit(3, 1);  // as if it had come at second 1: before 2, but not before 1
  std::string order;
  for (int i = 0; i < 3; ++i) order += Show(rig.Step()) + " ";
  EXPECT_EQ(order, "1:0+4>1 3:0+4>1 2:0+4>1 ");
}

TEST(BatchSchedulerOrderTest, AdmissionLeavesRoomForGrowth) {
  BatchSchedulerOptions options = PlainOptions();
  options.growth_reserve_tokens = 8;
  SchedulerRig rig(SmallCache(8, 4), options);
  ASSERT_TRUE(rig.Submit(1, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(3, 4, 2).ok());
  // 1 and 2 take 2 blocks each and may grow by 2 each: full.
  EXPECT_EQ(Show(rig.Step()), "1:0+8>1 2:0+8>1");
  EXPECT_EQ(Show(rig.Step()), "1:8+1>1 2:8+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerOrderTest, GrowthReserveStopsAtTheMaximum) {
  BatchSchedulerOptions options = PlainOptions();
  options.growth_reserve_tokens = 1000;
  SchedulerRig rig(SmallCache(8, 4), options);
  // 3 + 3 + 2 blocks at their longest: all fit at once.
  ASSERT_TRUE(rig.Submit(1, 8, 5).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 5).ok());
  ASSERT_TRUE(rig.Submit(3, 4, 5).ok());
  EXPECT_EQ(rig.Step().size(), 3u);
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
}

// The reserve must not keep out a request that could run alone.
TEST(BatchSchedulerOrderTest, WhoIsAloneNeedsNoReserve) {
  KvCacheOptions cache = SmallCache(8, 4);
  cache.watermark_blocks = BlockCount(1);
  BatchSchedulerOptions options = PlainOptions();
  options.growth_reserve_tokens = 1000;
  SchedulerRig rig(cache, options);
  ASSERT_TRUE(rig.Submit(1, 28, 1).ok());
  ASSERT_TRUE(rig.Submit(2, 28, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+28>1");
  EXPECT_EQ(Show(rig.Step()), "2:0+28>1");
}

TEST(BatchSchedulerOrderTest, AdmissionLeavesTheWatermarkGrowthUsesIt) {
  KvCacheOptions cache = SmallCache(8, 4);
  cache.watermark_blocks = BlockCount(2);
  SchedulerRig rig(cache, PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 16, 5).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 5).ok());
  ASSERT_TRUE(rig.Submit(3, 1, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+16>1 2:0+8>1");
  // One more block each: the watermark is gone, and still nobody is admitted.
  EXPECT_EQ(Show(rig.Step()), "1:16+1>1 2:8+1>1");
  EXPECT_EQ(rig.cache().AvailableBlocks(GroupId(0)), BlockCount(0));
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
}

// Two long prompts whose first chunks would both fit must not both begin.
TEST(BatchSchedulerOrderTest, APromptIsAdmittedAsAWhole) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_chunk_tokens = 4;
  SchedulerRig rig(SmallCache(8, 4), options);
  ASSERT_TRUE(rig.Submit(1, 20, 1).ok());
  ASSERT_TRUE(rig.Submit(2, 20, 1).ok());
  for (uint32_t first = 0; first < 20; first += 4) {
    const std::vector<WorkItem> items = rig.Step();
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].request, RequestId(1));
    EXPECT_EQ(items[0].first_new, TokenPos(first));
  }
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
}

TEST(BatchSchedulerOrderTest, ACachedPrefixIsNotComputedAgain) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_tokens = 32;
  SchedulerRig rig(SmallCache(32, 4), options);
  TestRequest first = SchedulerRig::Request(1, 16, 1);
  ASSERT_TRUE(rig.Submit(first).ok());
  rig.Step();
  TestRequest second = SchedulerRig::Request(2, 0, 1);
  second.prompt = Prompt(1, 19);
  TestRequest stranger = second;
  stranger.id = RequestId(3);
  stranger.salt = "tenant";
  TestRequest loner = second;
  loner.id = RequestId(4);
  loner.share = false;
  ASSERT_TRUE(rig.Submit(second).ok());
  ASSERT_TRUE(rig.Submit(stranger).ok());
  ASSERT_TRUE(rig.Submit(loner).ok());
  // The budget is charged for what is computed: 3 + 19 + 10.
  EXPECT_EQ(Show(rig.Step()), "2:16+3>1 3:0+19>1 4:0+10");
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 4u);
  EXPECT_EQ(finished[1].costs.cached_tokens, 16u);
  EXPECT_EQ(finished[2].costs.cached_tokens, 0u);
  EXPECT_EQ(finished[3].costs.cached_tokens, 0u);
}

// A model with a window holds fewer blocks than its tokens would need, and the
// scheduler must not ask for more.
TEST(BatchSchedulerOrderTest, AWindowedModelRunsPromptsLongerThanThePool) {
  KvCacheOptions cache = SmallCache(8, 4);
  cache.groups[0].window = 8;
  BatchSchedulerOptions options = PlainOptions();
  options.max_chunk_tokens = 8;
  options.growth_reserve_tokens = 16;
  SchedulerRig rig(cache, options);
  ASSERT_TRUE(rig.Submit(1, 100, 50).ok());
  ASSERT_TRUE(rig.Submit(2, 90, 50).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
  // 8 + 7 tokens of a run: 4 blocks and one that it begins in.
  options.max_chunk_tokens = 32;
  SchedulerRig coarse(cache, options);
  EXPECT_TRUE(absl::IsOutOfRange(coarse.Submit(1, 100, 50)));
}

}  // namespace
}  // namespace paged_kv
