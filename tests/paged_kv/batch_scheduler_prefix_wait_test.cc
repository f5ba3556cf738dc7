// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a prefix that another request is computing.

#include "paged_kv/batch_scheduler_prefix_wait.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

BatchSchedulerOptions Waiting(uint32_t min_tokens, uint32_t max_steps) {
  BatchSchedulerOptions options = PlainOptions();
  options.prefix_wait_min_tokens = min_tokens;
  options.max_prefix_wait_steps = max_steps;
  options.max_chunk_tokens = 8;
  return options;
}

// Prompt(text, shared) and then `own` tokens of its own.
TestRequest Sharing(uint64_t id, int32_t text, uint32_t shared, uint32_t own) {
  TestRequest request = SchedulerRig::Request(id, 0, 2);
  request.prompt = Prompt(text, shared);
  for (TokenId token : Prompt(static_cast<int32_t>(id), own)) {
    request.prompt.push_back(token);
  }
  return request;
}

TEST(BatchSchedulerPrefixWaitTest, WaitsForWhatAnotherComputes) {
  SchedulerRig rig(SmallCache(32, 4), Waiting(8, 10));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(3, 8, 5, 0)).ok());
  // Request 3 has nothing to wait for and goes first.
  EXPECT_EQ(Show(rig.Step()), "1:0+8 3:0+5>1");
  EXPECT_EQ(Show(rig.Step()), "3:5+1>1 1:8+8");
  EXPECT_EQ(Show(rig.Step()), "1:16+4>1 2:16+4>1");
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 3u);
  EXPECT_EQ(finished[2].id, RequestId(2));
  EXPECT_EQ(finished[2].costs.cached_tokens, 16u);
  EXPECT_EQ(finished[2].costs.prefix_wait_steps, 2u);
  EXPECT_EQ(rig->Stats().prefix_waits, 1u);
  EXPECT_EQ(rig->Stats().prefix_wait_steps, 2u);
}

TEST(BatchSchedulerPrefixWaitTest, LetsOthersPassInEveryStepThatItWaits) {
  SchedulerRig rig(SmallCache(32, 4), Waiting(8, 10));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 16, 4)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+8");
  ASSERT_TRUE(rig.Submit(Sharing(3, 8, 5, 0)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:8+8 3:0+5>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

// Only what is left of the prefix counts.
TEST(BatchSchedulerPrefixWaitTest, WaitsForAnEndThatIsNear) {
  SchedulerRig rig(SmallCache(64, 4), Waiting(8, 2));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 32, 1)).ok());
  rig.Step();
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 32, 1)).ok());
  // 24 tokens are left: 3 steps are too many, and 8 tokens are cached.
  EXPECT_EQ(Show(rig.Step()), "1:8+8 2:8+8");
  ASSERT_TRUE(rig.Submit(Sharing(3, 9, 32, 1)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:16+8 2:16+8");
  EXPECT_EQ(Show(rig.Step()), "1:24+8 2:24+8");
  EXPECT_EQ(Show(rig.Step()), "1:32+1>1 2:32+1>1 3:32+1>1");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerPrefixWaitTest, DoesNotWaitIfSwitchedOff) {
  SchedulerRig rig(SmallCache(32, 4), Waiting(8, 0));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 16, 4)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+8 2:0+8");
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerPrefixWaitTest, DoesNotWaitForLittle) {
  SchedulerRig rig(SmallCache(32, 4), Waiting(17, 10));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 19, 1)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 19, 1)).ok());
  // 16 of the 19 shared tokens are whole blocks.
  EXPECT_EQ(rig.Step().size(), 2u);
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerPrefixWaitTest, DoesNotWaitForWhatTakesTooLong) {
  SchedulerRig rig(SmallCache(64, 4), Waiting(8, 3));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 32, 1)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 32, 1)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(3, 9, 24, 9)).ok());
  // 32 tokens take 4 steps, 24 take 3.
  EXPECT_EQ(Show(rig.Step()), "1:0+8 2:0+8");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerPrefixWaitTest, OtherKeysAreNotWaitedFor) {
  SchedulerRig rig(SmallCache(64, 4), Waiting(8, 10));
  TestRequest salted = Sharing(2, 9, 16, 4);
  salted.salt = "tenant";
  TestRequest loner = Sharing(3, 9, 16, 4);
  loner.share = false;
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(salted).ok());
  ASSERT_TRUE(rig.Submit(loner).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+8 2:0+8 3:0+8");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerPrefixWaitTest, StopsWaitingIfTheOtherIsCancelled) {
  SchedulerRig rig(SmallCache(32, 4), Waiting(8, 10));
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 16, 4)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+8");
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  EXPECT_EQ(Show(rig.Step()), "2:8+8");
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

// The cancelled request's place may be another's by then, who runs and computes
// something else.
TEST(BatchSchedulerPrefixWaitTest, DoesNotWaitForWhoTookTheOthersPlace) {
  BatchSchedulerOptions options = Waiting(8, 10);
  options.max_batch_tokens = 16;
  options.max_batch_sequences = 4;
  SchedulerRig rig(SmallCache(64, 4), options);
  ASSERT_TRUE(rig.Submit(Sharing(1, 9, 32, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(2, 9, 32, 4)).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+8");
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  ASSERT_TRUE(rig->TakeFinished().has_value());
  // Both are better than request 2 and leave it no tokens in their first step.
  TestRequest next = Sharing(3, 7, 32, 4);
  TestRequest brief = SchedulerRig::Request(4, 8, 1);
  next.priority = brief.priority = 1;
  ASSERT_TRUE(rig.Submit(next).ok());
  ASSERT_TRUE(rig.Submit(brief).ok());
  EXPECT_EQ(Show(rig.Step()), "3:0+8 4:0+8>1");
  EXPECT_EQ(Show(rig.Step()), "3:8+8 2:8+8");
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

// A leader that is held up does not hold up its followers for ever.
TEST(BatchSchedulerPrefixWaitTest, WaitingIsBounded) {
  BatchSchedulerOptions options = Waiting(8, 5);
  options.max_batch_tokens = 8;
  options.max_batch_sequences = 8;
  SchedulerRig rig(SmallCache(64, 4), options);
  // The budget leaves nothing to the leader: it computes a token a step.
  ASSERT_TRUE(rig.Submit(1, 1, 60).ok());
  for (uint64_t id = 2; id <= 6; ++id) ASSERT_TRUE(rig.Submit(id, 1, 60).ok());
  rig.Step();
  ASSERT_TRUE(rig.Submit(Sharing(10, 9, 16, 4)).ok());
  ASSERT_TRUE(rig.Submit(Sharing(11, 9, 16, 4)).ok());
  rig.Launch();
  rig.Land();
  int waited = 0;
  while (rig->Progress(RequestId(11))->samples_waiting == 1) {
    ASSERT_LT(++waited, 40);
    rig.Step();
  }
  EXPECT_LE(rig->Progress(RequestId(11))->costs.prefix_wait_steps, 5u);
  EXPECT_EQ(rig.RunToEnd().size(), 8u);
}

TEST(BatchSchedulerPrefixWaitTest, SharablePrefixEndsWhereTheKeysDiffer) {
  auto cache = KvCacheManager::Create(SmallCache(8, 4));
  ASSERT_TRUE(cache.ok());
  ManualClock clock;
  internal::SchedulerState state(cache->get(), &clock, PlainOptions());
  const auto insert = [&](uint64_t id, std::vector<KeyExtra> extras,
                          uint32_t length) {
    GenerationRequest request;
    const std::vector<TokenId> prompt = Prompt(1, length);
    request.id = RequestId(id);
    request.prompt = prompt;
    request.extras = extras;
    return internal::SampleRef{state.requests.Insert(request), 0};
  };
  const auto plain = insert(1, {}, 40);
  const auto image_a = insert(2, {Content(TokenPos(18), "a")}, 40);
  const auto image_b = insert(3, {Content(TokenPos(18), "b")}, 40);
  const auto two =
      insert(4, {Content(TokenPos(18), "a"), Content(TokenPos(30), "b")}, 40);
  const auto salted = insert(5, {Salt("a")}, 40);
  const auto brief = insert(6, {}, 16);
  EXPECT_EQ(SharablePrefix(state, plain, plain), 36u) << "one token is left";
  EXPECT_EQ(SharablePrefix(state, plain, image_a), 16u);
  EXPECT_EQ(SharablePrefix(state, image_b, image_a), 16u);
  EXPECT_EQ(SharablePrefix(state, two, image_a), 28u);
  EXPECT_EQ(SharablePrefix(state, plain, salted), 0u);
  EXPECT_EQ(SharablePrefix(state, plain, brief), 16u);
  EXPECT_EQ(SharablePrefix(state, brief, plain), 12u);
}

}  // namespace
}  // namespace paged_kv
