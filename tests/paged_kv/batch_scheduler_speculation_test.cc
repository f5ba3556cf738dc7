// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes that check drafts: what is accepted, what is given back, and that
// nobody else pays for it.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

BatchSchedulerOptions Drafting(uint32_t max_draft_tokens) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_draft_tokens = max_draft_tokens;
  return options;
}

uint64_t Held(const KvCacheManager& cache) {
  return cache.Stats().pools[0].held.value();
}

size_t Outputs(SchedulerRig& rig, uint64_t id) {
  const auto output = rig->Output(RequestId(id), 0);
  EXPECT_TRUE(output.ok()) << output.status();
  return output.ok() ? output->size() : 0;
}

TEST(BatchSchedulerSpeculationTest, RightDraftsAreTokensAtOnce) {
  SchedulerRig rig(SmallCache(20, 4), Drafting(4));
  ASSERT_TRUE(rig.Submit(1, 5, 12).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 4, 0).ok());
  const std::vector<WorkItem> items = rig.Step();
  EXPECT_EQ(Show(items), "1:5+1>5");
  EXPECT_EQ(items[0].drafts.size(), 4u);
  EXPECT_EQ(Outputs(rig, 1), 6u);
  // All but the last output has its K/V.
  EXPECT_EQ(rig.cache().Describe(items[0].sequence)->written, TokenCount(10));
  EXPECT_EQ(Show(rig.Step()), "1:10+1>1") << "drafts hold for one step";
  EXPECT_EQ(rig->Stats().drafted_tokens, 4u);
  EXPECT_EQ(rig->Stats().accepted_tokens, 4u);
  const auto finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].costs.drafted_tokens, 4u);
  EXPECT_EQ(finished[0].costs.accepted_tokens, 4u);
  // 5 of the prompt, 11 of 12 outputs, of which 4 were drafts.
  EXPECT_EQ(finished[0].costs.computed_tokens, 5u + 11 - 4);
}

TEST(BatchSchedulerSpeculationTest, BlocksOfWrongDraftsAreGivenBack) {
  for (size_t right = 0; right < 8; ++right) {
    SCOPED_TRACE(right);
    SchedulerRig rig(SmallCache(40, 1), Drafting(8));
    ASSERT_TRUE(rig.Submit(1, 5, 20).ok());
    rig.Step();
    ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, right, 8 - right).ok());
    rig.Launch();
    EXPECT_EQ(Held(rig.cache()), 5u + 1 + 8);
    rig.Land();
    EXPECT_EQ(Outputs(rig, 1), 1 + right + 1);
    EXPECT_EQ(Held(rig.cache()), 5 + 1 + right);
    EXPECT_EQ(rig->Stats().drafted_tokens, 8u);
    EXPECT_EQ(rig->Stats().accepted_tokens, right);
    rig.RunToEnd();
  }
}

TEST(BatchSchedulerSpeculationTest, ADraftThatStopsTheSampleIsItsLastOutput) {
  TestRequest request = SchedulerRig::Request(1, 5, 12);
  const std::vector<TokenId> unstopped = ExpectedOutput(request, 0);
  request.stop_tokens = {unstopped[3]};
  const std::vector<TokenId> expected = ExpectedOutput(request, 0);
  ASSERT_EQ(expected.size(), 4u) << "the stop token came before";
  SchedulerRig rig(SmallCache(20, 4), Drafting(8));
  ASSERT_TRUE(rig.Submit(request).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 8, 0).ok());
  rig.Step();
  const auto finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kStopToken);
  EXPECT_EQ(rig->Stats().accepted_tokens, 2u);
}

TEST(BatchSchedulerSpeculationTest, NoDraftBehindTheLastOutput) {
  SchedulerRig rig(SmallCache(20, 4), Drafting(8));
  ASSERT_TRUE(rig.Submit(1, 5, 4).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 8, 0).ok());
  // Three outputs are left, the last of which nobody need guess.
  EXPECT_EQ(rig.Step()[0].drafts.size(), 2u);
  const auto finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kMaxTokens);
}

TEST(BatchSchedulerSpeculationTest, DraftsTakeWhatTheStepHasLeft) {
  BatchSchedulerOptions options = Drafting(8);
  options.max_batch_tokens = 14;
  options.max_batch_sequences = 14;
  SchedulerRig rig(SmallCache(60, 4), options);
  ASSERT_TRUE(rig.Submit(1, 4, 30).ok());
  ASSERT_TRUE(rig.Submit(2, 4, 30).ok());
  rig.Step();
  const auto propose = [&](uint64_t id) {
    ASSERT_TRUE(rig.engine().Propose(RequestId(id), 0, 8, 0).ok());
  };
  propose(1);
  propose(2);
  std::vector<WorkItem> items = rig.Step();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].drafts.size(), 8u);
  EXPECT_EQ(items[1].drafts.size(), 4u);

  // A prompt comes before all drafts.
  propose(1);
  propose(2);
  ASSERT_TRUE(rig.Submit(3, 10, 4).ok());
  items = rig.Step();
  EXPECT_EQ(Show(items), "1:13+1>3 2:9+1>1 3:0+10>1");
  rig.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, AChunkBoundsTokensAndDraftsTogether) {
  BatchSchedulerOptions options = Drafting(8);
  options.max_chunk_tokens = 3;
  SchedulerRig rig(SmallCache(20, 4), options);
  ASSERT_TRUE(rig.Submit(1, 3, 20).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 8, 0).ok());
  EXPECT_EQ(rig.Step()[0].drafts.size(), 2u);
  rig.RunToEnd();
}

// Two sequences fill the pool; drafts of one would need the block that the
// other is about to take.
TEST(BatchSchedulerSpeculationTest, DraftsPreemptNobody) {
  SchedulerRig rig(SmallCache(5, 4), Drafting(8));
  ASSERT_TRUE(rig.Submit(1, 7, 6).ok());
  ASSERT_TRUE(rig.Submit(2, 4, 3).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 5, 0).ok());
  // 1 has 7 of 8 slots, 2 has a full block and needs one more: 2 blocks are
  // free, drafts up to slot 12 would take one of them, and fit ...
  EXPECT_EQ(Show(rig.Step()), "1:7+1>5 2:4+1>1");
  EXPECT_EQ(rig->Stats().preemptions, 0u);
  rig.RunToEnd();

  // ... and here do not.
  SchedulerRig full(SmallCache(4, 4), Drafting(8));
  ASSERT_TRUE(full.Submit(1, 7, 6).ok());
  ASSERT_TRUE(full.Submit(2, 4, 3).ok());
  full.Step();
  ASSERT_TRUE(full.engine().Propose(RequestId(1), 0, 5, 0).ok());
  EXPECT_EQ(Show(full.Step()), "1:7+1>1 2:4+1>1");
  EXPECT_EQ(full->Stats().preemptions, 0u);
  EXPECT_EQ(full->Stats().drafted_tokens, 0u);
  full.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, ALostStepLosesNothingElse) {
  SchedulerRig rig(SmallCache(20, 2), Drafting(4));
  ASSERT_TRUE(rig.Submit(1, 5, 12).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 2, 2).ok());
  rig.Launch();
  ASSERT_TRUE(rig.engine().Crash().ok());
  rig.Check();
  EXPECT_EQ(rig->Stats().drafted_tokens, 0u);
  rig.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, ADraftingSampleIsNotScheduledAhead) {
  KvCacheOptions cache = SmallCache(20, 4);
  cache.max_steps_in_flight = 2;
  BatchSchedulerOptions options = Drafting(4);
  options.max_steps_in_flight = 2;
  SchedulerRig rig(cache, options);
  ASSERT_TRUE(rig.Submit(1, 5, 12).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 1, 1).ok());
  EXPECT_EQ(Show(rig.Launch()), "1:5+1>3");
  EXPECT_TRUE(rig.Launch().empty());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(rig.engine().Propose(RequestId(1), 0, 1, 1)));
  rig.Land();
  EXPECT_EQ(Show(rig.Launch()), "1:7+1>1");
  EXPECT_EQ(Show(rig.Launch()), "1:8+1>1");
  rig.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, CancelledWithDraftsInFlight) {
  SchedulerRig rig(SmallCache(20, 2), Drafting(4));
  ASSERT_TRUE(rig.Submit(1, 5, 12).ok());
  rig.Step();
  ASSERT_TRUE(rig.engine().Propose(RequestId(1), 0, 2, 2).ok());
  rig.Launch();
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  const auto taken = rig->TakeFinished();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->Output(0).size(), 1u);
  rig.Land();
  rig.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, SaysWhyItTakesNoDrafts) {
  SchedulerRig rig(SmallCache(20, 4), Drafting(4));
  const std::vector<TokenId> drafts = {1, 2};
  EXPECT_TRUE(absl::IsNotFound(rig->Propose(RequestId(1), 0, drafts)));
  ASSERT_TRUE(rig.Submit(1, 5, 2).ok());
  EXPECT_TRUE(absl::IsNotFound(rig->Propose(RequestId(1), 1, drafts)));
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Propose(RequestId(1), 0, drafts)))
      << "no output yet";
  rig.Step();
  EXPECT_TRUE(rig->Propose(RequestId(1), 0, drafts).ok());
  rig.Step();
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Propose(RequestId(1), 0, drafts)))
      << "ended";
  rig.RunToEnd();
}

TEST(BatchSchedulerSpeculationTest, DraftsMustLeaveRoomForAToken) {
  BatchSchedulerOptions options = Drafting(32);
  options.max_batch_tokens = 32;
  const KvCacheOptions cache = SmallCache(20, 4);
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(options, cache)));
  options.max_draft_tokens = 31;
  EXPECT_TRUE(Validate(options, cache).ok());
}

}  // namespace
}  // namespace paged_kv
