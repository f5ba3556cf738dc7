// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The small parts of the scheduler, each alone.

#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler_clock.h"
#include "paged_kv/batch_scheduler_completion.h"
#include "paged_kv/batch_scheduler_fit.h"
#include "paged_kv/batch_scheduler_intake.h"
#include "paged_kv/batch_scheduler_preemption.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_request_table.h"
#include "paged_kv/batch_scheduler_ring_queue.h"
#include "paged_kv/batch_scheduler_running_set.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_step_builder.h"
#include "paged_kv/batch_scheduler_step_ring.h"
#include "paged_kv/batch_scheduler_waiting_queue.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv::internal {
namespace {

Rank At(int64_t seconds, int32_t priority, uint64_t number,
        absl::Duration head_start) {
  return Rank::Make(priority, absl::UnixEpoch() + absl::Seconds(seconds),
                    number, head_start);
}

TEST(RankTest, OrdersByArrivalThenNumberThenSample) {
  const absl::Duration none = absl::ZeroDuration();
  EXPECT_LT(At(1, 0, 9, none), At(2, 0, 1, none));
  EXPECT_LT(At(1, 0, 1, none), At(1, 0, 2, none));
  EXPECT_LT(At(1, 0, 1, none), At(1, 5, 2, none)) << "worth nothing";
  Rank second = At(1, 0, 1, none);
  second.sample = 1;
  EXPECT_LT(At(1, 0, 1, none), second);
  EXPECT_LT(second, At(1, 0, 2, none));
  EXPECT_FALSE(second < second);
}

TEST(RankTest, PriorityIsAHeadStartOrStrict) {
  const absl::Duration ten = absl::Seconds(10);
  EXPECT_LT(At(19, 1, 2, ten), At(10, 0, 1, ten));
  EXPECT_LT(At(10, 0, 1, ten), At(21, 1, 2, ten));
  const absl::Duration strict = absl::InfiniteDuration();
  EXPECT_LT(At(1000000, 1, 2, strict), At(0, 0, 1, strict));
  EXPECT_LT(At(0, 0, 1, strict), At(0, -1, 2, strict));
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_LT(At(0, kMax, 2, strict), At(0, kMin, 1, strict));
  EXPECT_LT(At(0, kMax, 2, absl::Hours(1e9)), At(0, kMin, 1, absl::Hours(1e9)));
}

RankedSample Entry(uint64_t number) {
  return {At(0, 0, number, absl::ZeroDuration()),
          {static_cast<uint32_t>(number), 0}};
}

TEST(WaitingQueueTest, IsSorted) {
  WaitingQueue queue;
  for (uint64_t n : {5, 1, 9, 3}) queue.Insert(Entry(n));
  queue.Erase(Entry(5));
  std::vector<uint64_t> order;
  for (const RankedSample& entry : queue) order.push_back(entry.rank.number);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 3, 9}));
  EXPECT_DEATH(queue.Insert(Entry(3)), "is_new");
  EXPECT_DEATH(queue.Erase(Entry(4)), "erased == 1");
}

TEST(RunningSetTest, IsSortedAndBounded) {
  RunningSet set(3);
  for (uint64_t n : {5, 1, 9}) set.Insert(Entry(n));
  EXPECT_EQ(set.worst().rank.number, 9u);
  EXPECT_DEATH(set.Insert(Entry(2)), "capacity");
  set.Erase(Entry(9));
  EXPECT_EQ(set.worst().rank.number, 5u);
  EXPECT_EQ(set.begin()->rank.number, 1u);
  EXPECT_DEATH(set.Erase(Entry(9)), "end");
  EXPECT_DEATH(set.Erase(Entry(2)), "ref");
}

TEST(RingQueueTest, FirstInFirstOutAroundTheEnd) {
  RingQueue<int> queue(3);
  for (int round = 0; round < 5; ++round) {
    queue.Push(2 * round);
    queue.Push(2 * round + 1);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_EQ(queue.at(1), 2 * round + 1);
    EXPECT_EQ(queue.Pop(), 2 * round);
    EXPECT_EQ(queue.Pop(), 2 * round + 1);
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_DEATH(queue.Pop(), "size_ > 0");
  for (int i = 0; i < 3; ++i) queue.Push(i);
  EXPECT_DEATH(queue.Push(3), "size_ <");
}

TEST(StepRingTest, KeepsStepsInOrder) {
  StepRing ring(2, 4);
  ring.Push().id = StepId(1);
  ring.Push().id = StepId(2);
  EXPECT_TRUE(ring.full());
  EXPECT_DEATH(ring.Push(), "full");
  EXPECT_EQ(ring.oldest().id, StepId(1));
  EXPECT_EQ(ring.newest().id, StepId(2));
  ring.PopOldest();
  StepInFlight& third = ring.Push();
  EXPECT_TRUE(third.items.empty());
  third.id = StepId(3);
  EXPECT_EQ(ring.oldest().id, StepId(2));
  EXPECT_EQ(ring.newest().id, StepId(3));
  ring.PopOldest();
  ring.PopOldest();
  EXPECT_DEATH(ring.PopOldest(), "empty");
}

TEST(RequestTableTest, CopiesWhatIsBorrowed) {
  RequestTable table(2);
  uint32_t slot = 0;
  {
    TestRequest request = SchedulerRig::Request(7, 5, 3);
    request.salt = "s";  // short enough to lie inside the string object
    request.stop_tokens = {4, 5};
    slot = request.Borrow(
        [&](const GenerationRequest& r) { return table.Insert(r); });
  }
  const RequestState& state = table.at(slot);
  EXPECT_EQ(state.samples[0].tokens, Prompt(7, 5));
  EXPECT_GE(state.samples[0].tokens.capacity(), 8u);
  EXPECT_EQ(state.stop_tokens, (std::vector<TokenId>{4, 5}));
  ASSERT_EQ(state.extras.size(), 1u);
  EXPECT_EQ(state.extras[0].value, "s");
  EXPECT_EQ(table.Find(RequestId(7)), slot);
  EXPECT_TRUE(table.CheckInvariants().ok());
}

TEST(RequestTableTest, KeepsEveryExtraApart) {
  RequestTable table(1);
  uint32_t slot = 0;
  {
    const std::string salt = "tenant";
    const std::string image = "0123456789abcdef0123456789abcdef";
    const std::vector<KeyExtra> extras = {Salt(salt), Adapter(""),
                                          Content(TokenPos(3), image)};
    const std::vector<TokenId> prompt = Prompt(1, 4);
    GenerationRequest request;
    request.prompt = prompt;
    request.extras = extras;
    slot = table.Insert(request);
  }
  const std::vector<KeyExtra>& extras = table.at(slot).extras;
  ASSERT_EQ(extras.size(), 3u);
  EXPECT_EQ(extras[0].value, "tenant");
  EXPECT_EQ(extras[1].value, "");
  EXPECT_EQ(extras[1].kind, KeyExtra::Kind::kAdapter);
  EXPECT_EQ(extras[2].value, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(extras[2].position, TokenPos(3));
}

TEST(RequestTableTest, AReusedSlotHasAnotherGeneration) {
  RequestTable table(1);
  const auto insert = [&](uint64_t id) {
    return SchedulerRig::Request(id, 4, 1).Borrow(
        [&](const GenerationRequest& r) { return table.Insert(r); });
  };
  const uint32_t slot = insert(1);
  const uint64_t generation = table.at(slot).generation;
  EXPECT_TRUE(absl::IsAlreadyExists(table.CheckRoomFor(RequestId(1))));
  EXPECT_TRUE(absl::IsResourceExhausted(table.CheckRoomFor(RequestId(2))));
  table.Release(slot);
  EXPECT_EQ(table.Find(RequestId(1)), RequestTable::kNone);
  EXPECT_TRUE(table.CheckInvariants().ok());
  EXPECT_EQ(insert(2), slot);
  EXPECT_NE(table.at(slot).generation, generation);
}

LayerGroup Group(uint32_t block_tokens, uint32_t window, uint32_t sinks) {
  LayerGroup group;
  group.shape.block_tokens = block_tokens;
  group.window = window;
  group.sink_tokens = sinks;
  return group;
}

TEST(FitTest, CountsTheBlocksThatAreHeldAtOnce) {
  EXPECT_EQ(MaxBlocksHeld(Group(16, 0, 0), 1, 8), 1u);
  EXPECT_EQ(MaxBlocksHeld(Group(16, 0, 0), 16, 8), 1u);
  EXPECT_EQ(MaxBlocksHeld(Group(16, 0, 0), 17, 8), 2u);
  // One token in flight and the 7 before it may touch 3 blocks of 4.
  EXPECT_EQ(MaxBlocksHeld(Group(4, 8, 0), 1000, 1), 3u);
  EXPECT_EQ(MaxBlocksHeld(Group(4, 8, 5), 1000, 1), 5u);
  EXPECT_EQ(MaxBlocksHeld(Group(4, 8, 0), 6, 1), 2u) << "never more than all";
  EXPECT_EQ(MaxBlocksHeld(Group(16, 0, 0), 1ull << 40, 8), 1ull << 36);
}

TEST(FitTest, GroupsOfOneShapeShareTheirBlocks) {
  KvCacheOptions options = SmallCache(4, 4);
  options.groups.push_back(options.groups[0]);
  options.groups[1].window = 4;
  auto cache = KvCacheManager::Create(options);
  ASSERT_TRUE(cache.ok());
  // The windowed group holds at most 2 blocks, the other the rest of 8.
  EXPECT_TRUE(CheckFitsEmptyCache(**cache, 24, 1).ok());
  const absl::Status never = CheckFitsEmptyCache(**cache, 25, 1);
  EXPECT_TRUE(absl::IsOutOfRange(never));
  EXPECT_NE(never.message().find("need 9 blocks"), std::string::npos) << never;

  options.groups[1].shape.head_dim *= 2;
  cache = KvCacheManager::Create(options);
  ASSERT_TRUE(cache.ok());
  EXPECT_TRUE(CheckFitsEmptyCache(**cache, 16, 1).ok());
  EXPECT_FALSE(CheckFitsEmptyCache(**cache, 17, 1).ok());
}

// Blocks that come back may be somebody else's, again and again: after four
// steps of waiting for them a victim is due. A new fork is no less patient.
TEST(MakeRoomTest, WaitsFourTimesForBlocksThatComeBack) {
  auto cache = KvCacheManager::Create(SmallCache(16, 4));
  ASSERT_TRUE(cache.ok());
  const ManualClock clock;
  SchedulerState state(cache->get(), &clock, PlainOptions());
  for (uint64_t id : {1, 2}) {
    TestRequest request = SchedulerRig::Request(id, 4, 5);
    request.samples = id == 1 ? 2 : 1;
    const absl::Status status = request.Borrow(
        [&](const GenerationRequest& r) { return SubmitRequest(&state, r); });
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto step = StepBuilder(&state).Build();
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_TRUE(CompleteStep(&state, step->id, {7, 8, 9}).ok());
  ASSERT_EQ(state.running.size(), 3u);
  state.steps.Push().id = StepId(2);  // in flight
  state.last_release = StepId(2);
  const RankedSample fork = *std::next(state.running.begin());
  ASSERT_EQ(fork.ref.sample, 1u);
  for (int i = 0; i < 4; ++i) {
    const Relief relief = MakeRoom(&state, fork);
    EXPECT_EQ(relief.kind, Relief::Kind::kLater) << i;
    EXPECT_FALSE(relief.victim.has_value()) << i;
    ++state.requests.at(fork.ref).stalls_in_a_row;
  }
  const SampleRef worst = state.running.worst().ref;
  EXPECT_EQ(MakeRoom(&state, fork).victim, worst);
  EXPECT_EQ(state.requests.at(fork.ref).stalls_in_a_row, 0u);
  EXPECT_EQ(state.stats.preemptions, 1u);
}

TEST(ClockTest, SteadyClockIsCloseToTheWallAndNeverGoesBack) {
  const SteadyClock clock;
  const absl::Time first = clock.Now();
  EXPECT_LT(absl::AbsDuration(absl::Now() - first), absl::Seconds(5));
  EXPECT_LE(first, clock.Now());
}

TEST(ClockTest, ManualClockMovesWhenTold) {
  ManualClock clock(absl::UnixEpoch() + absl::Seconds(3));
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(clock.Now(), absl::UnixEpoch() + absl::Seconds(5));
  clock.Set(absl::UnixEpoch());
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
}

TEST(FinishReasonTest, HasNames) {
  EXPECT_STREQ(FinishReasonName(FinishReason::kUnfinished), "unfinished");
  EXPECT_STREQ(FinishReasonName(FinishReason::kMaxTokens), "max_tokens");
  EXPECT_STREQ(FinishReasonName(FinishReason::kStopToken), "stop_token");
  EXPECT_STREQ(FinishReasonName(FinishReason::kStopped), "stopped");
  EXPECT_STREQ(FinishReasonName(FinishReason::kCancelled), "cancelled");
  EXPECT_STREQ(FinishReasonName(FinishReason::kFailed), "failed");
}

}  // namespace
}  // namespace paged_kv::internal
