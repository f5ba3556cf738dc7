// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Who gives way when blocks run out, and what that costs.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

// Runs until somebody has been preempted.
void RunToPreemption(SchedulerRig* rig) {
  for (int i = 0; rig->scheduler().Stats().preemptions == 0; ++i) {
    ASSERT_LT(i, 1000);
    ASSERT_FALSE(rig->Step().empty());
  }
}

// Runs until a step has an item of `request`, which it returns.
WorkItem StepUntilRuns(SchedulerRig* rig, RequestId request) {
  for (int i = 0; i < 1000; ++i) {
    for (const WorkItem& item : rig->Step()) {
      if (item.request == request) return item;
    }
  }
  ADD_FAILURE() << "request " << request << " never runs";
  return WorkItem{};
}

TEST(BatchSchedulerPreemptionTest, TheYoungestGivesWay) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
  RunToPreemption(&rig);
  EXPECT_EQ(rig->Progress(RequestId(1))->costs.preemptions, 0u);
  EXPECT_EQ(rig->Progress(RequestId(2))->costs.preemptions, 0u);
  EXPECT_EQ(rig->Progress(RequestId(3))->costs.preemptions, 1u);
  EXPECT_EQ(rig->Progress(RequestId(3))->samples_waiting, 1u);
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerPreemptionTest, TheLowestPriorityGivesWayBeforeTheYoungest) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  for (uint64_t id : {1, 2, 3}) {
    TestRequest request = SchedulerRig::Request(id, 8, 12);
    request.priority = id == 2 ? 0 : 1;
    ASSERT_TRUE(rig.Submit(request).ok());
  }
  RunToPreemption(&rig);
  EXPECT_EQ(rig->Progress(RequestId(2))->costs.preemptions, 1u);
  EXPECT_EQ(rig->Progress(RequestId(3))->costs.preemptions, 0u);
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerPreemptionTest, TheLoserComesBackBeforeYoungerOnes) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 12).ok());
  RunToPreemption(&rig);
  ASSERT_TRUE(rig.Submit(3, 4, 1).ok());
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 3u);
  EXPECT_LE(finished[0].timing.first_scheduled,
            finished[2].timing.first_scheduled);
  EXPECT_EQ(finished[0].id, RequestId(1));
}

TEST(BatchSchedulerPreemptionTest, TokensSoFarBecomeThePromptAgain) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 12).ok());
  RunToPreemption(&rig);
  const size_t had = rig->Output(RequestId(2), 0)->size();
  EXPECT_GT(had, 1u);
  // Its blocks are still cached, except those that the winner takes.
  const WorkItem again = StepUntilRuns(&rig, RequestId(2));
  EXPECT_NE(again.first_new, TokenPos(0)) << "found nothing in the cache";
  EXPECT_EQ(again.first_new.value() + again.new_tokens.value(), 8 + had);
  EXPECT_EQ(again.outputs, 1u);
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[1].costs.preemptions, 1u);
  EXPECT_GT(finished[1].costs.recomputed_tokens, 0u);
  EXPECT_LT(finished[1].costs.recomputed_tokens, 8 + had);
  EXPECT_EQ(
      finished[1].costs.computed_tokens - finished[1].costs.recomputed_tokens,
      8u + 12 - 1);
}

TEST(BatchSchedulerPreemptionTest, TheWorstPausesRatherThanGiveItselfUp) {
  SchedulerRig rig(SmallCache(5, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 12, 4).ok());  // 4 blocks in the end
  ASSERT_TRUE(rig.Submit(2, 4, 8).ok());   // 3
  rig.Step();
  EXPECT_EQ(Show(rig.Step()), "1:12+1>1");
  EXPECT_EQ(rig->Stats().stalls, 1u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  EXPECT_EQ(rig->Stats().running, 2u);
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  EXPECT_EQ(rig->Stats().recomputed_tokens, 0u);
}

TEST(BatchSchedulerPreemptionTest, NobodyIsAdmittedInAStepThatPreempts) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 12).ok());
  ASSERT_TRUE(rig.Submit(3, 4, 20).ok());
  rig.Step();
  while (rig->Stats().preemptions == 0) {
    for (const WorkItem& item : rig.Step()) {
      if (rig->Stats().preemptions > 0) {
        EXPECT_NE(item.request, RequestId(3));
      }
    }
  }
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

// With a step in flight freed blocks are not available at once, and the
// scheduler must not throw out one sequence after the other meanwhile.
TEST(BatchSchedulerPreemptionTest, OneVictimIsEnoughWhileAStepIsInFlight) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(8, 4), options);
  for (uint64_t id : {1, 2, 3, 4}) ASSERT_TRUE(rig.Submit(id, 8, 9).ok());
  rig.Launch();
  rig.Launch();
  while (rig->Stats().preemptions == 0) {
    rig.Land();
    rig.Launch();
  }
  EXPECT_EQ(rig->Stats().preemptions, 1u);
  EXPECT_EQ(rig->Progress(RequestId(4))->costs.preemptions, 1u);
  rig.Land();
  rig.Launch();
  EXPECT_EQ(rig->Stats().preemptions, 1u);
  EXPECT_EQ(rig.RunToEnd().size(), 4u);
}

// What a preempted sequence was sampling when it lost its blocks still counts.
TEST(BatchSchedulerPreemptionTest, OutputInFlightIsNotLost) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(8, 4), options);
  ASSERT_TRUE(rig.Submit(1, 8, 20).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 12).ok());
  rig.Launch();
  rig.Launch();
  while (rig->Stats().preemptions == 0) {
    rig.Land();
    rig.Launch();
  }
  const size_t before = rig->Output(RequestId(2), 0)->size();
  rig.Land();
  EXPECT_EQ(rig->Output(RequestId(2), 0)->size(), before + 1);
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

// If the end of a sequence is in flight its blocks come back without anybody's
// being thrown out.
TEST(BatchSchedulerPreemptionTest, WaitsForBlocksThatComeBackAnyway) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(6, 4), options);
  ASSERT_TRUE(rig.Submit(1, 8, 5).ok());  // grows in its second step
  ASSERT_TRUE(rig.Submit(2, 8, 1).ok());  // ends with its first
  ASSERT_TRUE(rig.Submit(3, 8, 5).ok());
  EXPECT_EQ(rig.Launch().size(), 3u);
  EXPECT_TRUE(rig.Launch().empty()) << "both could only grow";
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  rig.Land();
  EXPECT_EQ(rig.Launch().size(), 2u);
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
  EXPECT_EQ(rig->Stats().preemptions, 0u);
}

// The room that a request asks for doubles with each time that it is thrown
// out; without that, it would come and go with every block that others take.
TEST(BatchSchedulerPreemptionTest, FewPreemptionsPerRequest) {
  SchedulerRig rig(SmallCache(100, 1), PlainOptions());
  // Somebody ends every few steps, and the others grow into what it leaves.
  for (uint32_t id = 1; id <= 31; ++id) {
    ASSERT_TRUE(rig.Submit(id, 1, 20 + 2 * id).ok());
  }
  ASSERT_EQ(rig.RunToEnd().size(), 31u);
  EXPECT_GE(rig->Stats().max_preemptions, 3u);
  // Without doubling it would be 7 and 125.
  EXPECT_LE(rig->Stats().max_preemptions, 5u);
  EXPECT_LE(rig->Stats().preemptions, 90u);
}

// A preempted prompt is no different: it continues where the cache ends.
TEST(BatchSchedulerPreemptionTest, APromptIsPreemptedInTheMiddle) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_chunk_tokens = 1;
  options.priority_head_start = absl::InfiniteDuration();
  SchedulerRig rig(SmallCache(8, 4), options);
  ASSERT_TRUE(rig.Submit(1, 20, 2).ok());
  rig.Steps(3);
  TestRequest urgent = SchedulerRig::Request(2, 4, 24);
  urgent.priority = 1;
  ASSERT_TRUE(rig.Submit(urgent).ok());
  RunToPreemption(&rig);
  const RequestProgress progress = *rig->Progress(RequestId(1));
  EXPECT_EQ(progress.costs.preemptions, 1u);
  EXPECT_LT(progress.costs.computed_tokens, 20u);
  EXPECT_GT(progress.costs.computed_tokens, 10u);
  const WorkItem again = StepUntilRuns(&rig, RequestId(1));
  EXPECT_GT(again.first_new.value(), 0u);
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

}  // namespace
}  // namespace paged_kv
