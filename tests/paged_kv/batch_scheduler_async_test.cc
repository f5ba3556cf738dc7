// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two steps in flight: a decode is scheduled before the token that it reads is
// known.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

BatchSchedulerOptions TwoInFlight() {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  return options;
}

TEST(BatchSchedulerAsyncTest, SchedulesTheNextDecodeWithoutItsToken) {
  SchedulerRig rig(SmallCache(16, 4), TwoInFlight());
  ASSERT_TRUE(rig.Submit(1, 5, 4).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:0+5>1");
  const std::vector<WorkItem> decode = rig.Launch();
  EXPECT_EQ(Show(decode), "1:5+1>1");
  EXPECT_TRUE(decode[0].tokens.empty());
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "1:6+1>1");
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "1:7+1>1");
  rig.Land();
  // Its four outputs are known or in flight: nothing is left to schedule.
  EXPECT_TRUE(rig.Launch().empty());
  rig.Land();
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

// Equal to the synchronous run, token by token and step by step. From three
// steps in flight on, decodes are scheduled before the token before theirs is
// known.
TEST(BatchSchedulerAsyncTest, ComputesTheSameTokensAsASynchronousRun) {
  for (uint32_t in_flight : {1, 2, 3, 5}) {
    KvCacheOptions cache = SmallCache(64, 4);
    cache.max_steps_in_flight = in_flight;
    BatchSchedulerOptions options = PlainOptions();
    options.max_steps_in_flight = in_flight;
    SchedulerRig rig(cache, options);
    for (uint64_t id = 1; id <= 5; ++id) {
      ASSERT_TRUE(rig.Submit(id, 3 + static_cast<uint32_t>(id), 12).ok());
    }
    EXPECT_EQ(rig.RunToEnd().size(), 5u);  // compares every token
    EXPECT_EQ(rig->Stats().computed_tokens, 4u + 5 + 6 + 7 + 8 + 5 * 11);
  }
}

TEST(BatchSchedulerAsyncTest, AStopTokenDropsTheDecodeBehindIt) {
  SchedulerRig rig(SmallCache(16, 4), TwoInFlight());
  TestRequest request = SchedulerRig::Request(1, 5, 9);
  request.stop_tokens = {ExpectedOutput(request, 0)[0]};
  ASSERT_TRUE(rig.Submit(request).ok());
  rig.Launch();
  EXPECT_EQ(Show(rig.Launch()), "1:5+1>1");
  rig.Land();
  // It has ended, and can be taken, although a step still runs for it.
  const auto done = rig->TakeFinished();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->samples[0].reason, FinishReason::kStopToken);
  EXPECT_EQ(done->Output(0).size(), 1u);
  EXPECT_EQ(rig.cache().Stats().sequences, 0u);
  EXPECT_EQ(rig.cache().Stats().pools[0].quarantined, BlockCount(2));
  rig.Land();
  EXPECT_EQ(rig.cache().Stats().pools[0].quarantined, BlockCount(0));
  EXPECT_EQ(rig->Stats().output_tokens, 1u);
}

TEST(BatchSchedulerAsyncTest, OutputsBecomeShareable) {
  SchedulerRig rig(SmallCache(32, 4), TwoInFlight());
  ASSERT_TRUE(rig.Submit(1, 6, 12).ok());
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  // 17 tokens are stored, 16 of them in full blocks.
  EXPECT_EQ(rig.cache().Lookup(finished[0].samples[0].tokens)->hit_tokens,
            TokenCount(16));
}

TEST(BatchSchedulerAsyncTest, AdmissionsJoinBetweenTwoSteps) {
  SchedulerRig rig(SmallCache(32, 4), TwoInFlight());
  ASSERT_TRUE(rig.Submit(1, 4, 6).ok());
  rig.Launch();
  ASSERT_TRUE(rig.Submit(2, 4, 6).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:4+1>1 2:0+4>1");
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerAsyncTest, CancelledInBothStepsInFlight) {
  SchedulerRig rig(SmallCache(32, 4), TwoInFlight());
  ASSERT_TRUE(rig.Submit(1, 4, 6).ok());
  ASSERT_TRUE(rig.Submit(2, 4, 6).ok());
  rig.Launch();
  rig.Launch();
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  rig.Check();
  ASSERT_TRUE(rig.Submit(3, 4, 2).ok());
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "2:5+1>1 3:0+4>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerAsyncTest, AbandonedStepsAreComputedAgain) {
  SchedulerRig rig(SmallCache(32, 4), TwoInFlight());
  EXPECT_TRUE(rig.engine().Crash().ok()) << "nothing is in flight: fine";
  ASSERT_TRUE(rig.Submit(1, 8, 6).ok());
  TestRequest group = SchedulerRig::Request(2, 8, 3);
  group.samples = 2;
  rig.Launch();
  rig.Land();
  ASSERT_TRUE(rig.Submit(group).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:8+1>1 2:0+8>2");
  EXPECT_EQ(Show(rig.Launch()), "1:9+1>1");
  ASSERT_TRUE(rig.engine().Crash().ok());
  rig.Check();
  EXPECT_EQ(rig->Stats().abandoned_steps, 2u);
  EXPECT_EQ(rig->Stats().waiting, 2u);
  EXPECT_EQ(rig->Stats().in_flight, 0u);
  EXPECT_EQ(rig->Output(RequestId(1), 0)->size(), 1u);
  // What was written before is still there; nothing of the lost steps is.
  EXPECT_EQ(rig.cache().Lookup(Prompt(2, 9))->hit_tokens, TokenCount(0));
  EXPECT_EQ(Show(rig.Launch()), "1:8+1>1 2:0+8>2");
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerAsyncTest, ChunksFollowEachOtherInFlight) {
  BatchSchedulerOptions options = TwoInFlight();
  options.max_chunk_tokens = 6;
  SchedulerRig rig(SmallCache(32, 4), options);
  ASSERT_TRUE(rig.Submit(1, 14, 2).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:0+6");
  EXPECT_EQ(Show(rig.Launch()), "1:6+6");
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "1:12+2>1");
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

}  // namespace
}  // namespace paged_kv
