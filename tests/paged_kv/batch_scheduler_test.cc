// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The life of a request, and what callers can get wrong.

#include "paged_kv/batch_scheduler.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/batch_scheduler_fixture.h"

namespace paged_kv {
namespace {

using Items = std::vector<WorkItem>;

TEST(BatchSchedulerTest, RunsARequestFromPromptToEnd) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(7, 5, 3).ok());
  EXPECT_EQ(Show(rig.Step()), "7:0+5>1");
  EXPECT_EQ(Show(rig.Step()), "7:5+1>1");
  EXPECT_EQ(rig->Output(RequestId(7), 0)->size(), 2u);
  EXPECT_EQ(Show(rig.Step()), "7:6+1>1");
  // The last token is never computed: nobody would read its K/V.
  EXPECT_TRUE(rig.Step().empty());

  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].id, RequestId(7));
  EXPECT_TRUE(finished[0].status.ok());
  EXPECT_EQ(finished[0].prompt_tokens, 5u);
  EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kMaxTokens);
  EXPECT_EQ(finished[0].Output(0).size(), 3u);
  EXPECT_EQ(finished[0].costs.computed_tokens, 7u);
  EXPECT_EQ(rig.cache().Stats().sequences, 0u);
}

TEST(BatchSchedulerTest, HandsOutTheTokensToCompute) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 5, 3).ok());
  const Items prompt = rig.Launch();
  const std::vector<TokenId> expected = Prompt(1, 5);
  EXPECT_EQ(
      std::vector<TokenId>(prompt[0].tokens.begin(), prompt[0].tokens.end()),
      expected);
  rig.Land();
  const Items decode = rig.Launch();
  ASSERT_EQ(decode[0].tokens.size(), 1u);
  EXPECT_EQ(decode[0].tokens[0], rig->Output(RequestId(1), 0)->back());
  rig.Land();
}

TEST(BatchSchedulerTest, EndsAtAStopTokenWhichItKeeps) {
  SchedulerRig rig(SmallCache(64, 4), PlainOptions());
  TestRequest request = SchedulerRig::Request(1, 4, 100);
  const std::vector<TokenId> free_run = ExpectedOutput(request, 0);
  request.stop_tokens = {-1, free_run[9]};
  ASSERT_TRUE(rig.Submit(request).ok());
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kStopToken);
  EXPECT_EQ(finished[0].Output(0).back(), free_run[9]);
  EXPECT_LE(finished[0].Output(0).size(), 10u);
}

TEST(BatchSchedulerTest, FinishEndsASampleWithWhatItHas) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 4, 20).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Finish(RequestId(1), 0)));
  rig.Steps(3);
  ASSERT_TRUE(rig->Finish(RequestId(1), 0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Finish(RequestId(1), 0)));
  EXPECT_TRUE(absl::IsNotFound(rig->Finish(RequestId(1), 1)));
  EXPECT_TRUE(absl::IsNotFound(rig->Finish(RequestId(2), 0)));
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].samples[0].reason, FinishReason::kStopped);
  EXPECT_EQ(finished[0].Output(0).size(), 3u);
}

TEST(BatchSchedulerTest, CancelsWhatWaitsRunsOrIsInFlight) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_sequences = 2;
  SchedulerRig rig(SmallCache(16, 4), options);
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(rig.Submit(id, 6, 9).ok());
  rig.Step();
  rig.Launch();
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());  // in flight
  ASSERT_TRUE(rig->Cancel(RequestId(3)).ok());  // waiting
  rig.Check();
  // Its blocks are still being written to, and not available yet.
  EXPECT_EQ(rig.cache().Stats().pools[0].quarantined, BlockCount(2));
  rig.Land();
  EXPECT_EQ(rig.cache().Stats().pools[0].quarantined, BlockCount(0));
  ASSERT_TRUE(rig->Cancel(RequestId(2)).ok());  // running
  rig.Check();
  EXPECT_EQ(rig.cache().Stats().sequences, 0u);

  const absl::Status again = rig->Cancel(RequestId(2));
  EXPECT_TRUE(absl::IsFailedPrecondition(again));
  EXPECT_EQ(again.message(), "request 2 has finished");
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 3u);
  for (const FinishedRequest& done : finished) {
    EXPECT_EQ(done.samples[0].reason, FinishReason::kCancelled);
  }
  EXPECT_EQ(finished[0].Output(0).size(), 1u);
  EXPECT_EQ(finished[1].Output(0).size(), 0u);
  EXPECT_EQ(finished[2].Output(0).size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(rig->Cancel(RequestId(2))));
  EXPECT_EQ(rig->Stats().cancelled, 3u);
}

TEST(BatchSchedulerTest, IgnoresTheOutputOfATakenRequest) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 6, 9).ok());
  rig.Launch();
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  ASSERT_TRUE(rig->TakeFinished().has_value());
  // Another request moves into its place while its step still runs.
  ASSERT_TRUE(rig.Submit(2, 3, 2).ok());
  rig.Land();
  EXPECT_EQ(rig->Output(RequestId(2), 0)->size(), 0u);
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerTest, TellsTheTime) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_batch_tokens = 4;
  options.max_batch_sequences = 4;
  SchedulerRig rig(SmallCache(16, 4), options);
  const absl::Time start = rig.clock().Now();
  ASSERT_TRUE(rig.Submit(1, 8, 2).ok());
  rig.clock().Advance(absl::Seconds(1));
  rig.Launch();  // first half of the prompt
  rig.clock().Advance(absl::Seconds(1));
  rig.Land();
  rig.Launch();
  rig.clock().Advance(absl::Seconds(1));
  rig.Land();
  const RequestTiming running = rig->Progress(RequestId(1))->timing;
  EXPECT_EQ(running.finished, absl::InfiniteFuture());
  rig.Launch();
  rig.clock().Advance(absl::Seconds(1));
  rig.Land();
  const RequestTiming timing = rig->TakeFinished()->timing;
  EXPECT_EQ(timing.arrival, start);
  EXPECT_EQ(timing.first_scheduled, start + absl::Seconds(1));
  EXPECT_EQ(timing.first_token, start + absl::Seconds(3));
  EXPECT_EQ(timing.finished, start + absl::Seconds(4));
}

TEST(BatchSchedulerTest, AClockThatGoesBackStandsStill) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  rig.clock().Set(absl::UnixEpoch() + absl::Hours(2));
  ASSERT_TRUE(rig.Submit(1, 4, 1).ok());
  rig.clock().Set(absl::UnixEpoch());
  ASSERT_TRUE(rig.Submit(2, 4, 1).ok());
  EXPECT_EQ(Show(rig.Step()), "1:0+4>1 2:0+4>1");
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  for (const FinishedRequest& done : finished) {
    EXPECT_EQ(done.timing.arrival, absl::UnixEpoch() + absl::Hours(2));
    EXPECT_EQ(done.timing.finished, absl::UnixEpoch() + absl::Hours(2));
  }
}

TEST(BatchSchedulerTest, ShowsProgressAndStatistics) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 4, 2).ok());
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_waiting, 1u);
  EXPECT_EQ(rig->Stats().waiting, 1u);
  rig.Launch();
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_running, 1u);
  EXPECT_EQ(rig->Stats().running, 1u);
  EXPECT_EQ(rig->Stats().in_flight, 1u);
  rig.Land();
  rig.Step();
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_ended, 1u);
  const BatchSchedulerStats stats = rig->Stats();
  EXPECT_EQ(stats.untaken, 1u);
  EXPECT_EQ(stats.running, 0u);
  EXPECT_EQ(stats.submitted, 1u);
  EXPECT_EQ(stats.finished, 1u);
  EXPECT_EQ(stats.steps, 2u);
  EXPECT_EQ(stats.computed_tokens, 5u);
  EXPECT_EQ(stats.output_tokens, 2u);
  ASSERT_TRUE(rig->TakeFinished().has_value());
  EXPECT_EQ(rig->Stats().untaken, 0u);
  EXPECT_TRUE(absl::IsNotFound(rig->Progress(RequestId(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(rig->Output(RequestId(1), 0).status()));
}

TEST(BatchSchedulerTest, RefusesWhatItCannotTake) {
  KvCacheOptions cache = SmallCache(64, 4);
  cache.max_tokens_per_sequence = 100;
  cache.max_extra_bytes_per_sequence = 16;
  BatchSchedulerOptions options = PlainOptions();
  options.max_requests = 2;
  options.max_batch_sequences = 3;
  SchedulerRig rig(cache, options);
  EXPECT_TRUE(absl::IsInvalidArgument(rig.Submit(1, 0, 5)));
  TestRequest request = SchedulerRig::Request(1, 4, 5);
  request.samples = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(rig.Submit(request)));
  request.samples = 4;
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(request)));
  request.samples = 1;
  request.salt = std::string(20, 's');
  EXPECT_TRUE(absl::IsInvalidArgument(rig.Submit(request)));
  request.salt.clear();
  EXPECT_TRUE(
      absl::IsInvalidArgument(request.Borrow([&](GenerationRequest borrowed) {
        borrowed.cache_priority = kPriorities;
        return rig->Submit(borrowed);
      })));
  // 90 + 12 tokens, the last of which is not stored.
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(1, 90, 12)));
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(1, 90, 0xFFFFFFFF)));
  EXPECT_EQ(rig->Stats().submitted, 0u);

  EXPECT_TRUE(rig.Submit(1, 90, 11).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(rig.Submit(1, 4, 5)));
  EXPECT_TRUE(rig.Submit(2, 4, 1).ok());
  const absl::Status full = rig.Submit(3, 4, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_NE(full.message().find("2 of 2 requests"), std::string::npos) << full;
  rig.RunToEnd();
  EXPECT_TRUE(rig.Submit(3, 4, 1).ok());
}

TEST(BatchSchedulerTest, AFinishedRequestKeepsItsIdUntilTaken) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 4, 1).ok());
  rig.Step();
  EXPECT_TRUE(absl::IsAlreadyExists(rig.Submit(1, 4, 1)));
  ASSERT_TRUE(rig->TakeFinished().has_value());
  EXPECT_TRUE(rig.Submit(1, 4, 1).ok());
}

TEST(BatchSchedulerTest, StepsCompleteInOrderAndOnce) {
  BatchSchedulerOptions options = PlainOptions();
  options.max_steps_in_flight = 2;
  SchedulerRig rig(SmallCache(32, 4), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Complete(StepId(1), {})));
  ASSERT_TRUE(rig.Submit(1, 4, 5).ok());
  const auto first = rig->Schedule();
  const auto second = rig->Schedule();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->outputs, 1u);
  const absl::Status full = rig->Schedule().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(full));
  EXPECT_EQ(full.message(),
            absl::StrCat("2 of 2 steps are in flight: complete step ",
                         first->id.value(), " first"));
  const std::vector<TokenId> token = {42};
  const std::vector<TokenId> two = {1, 2};
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Complete(second->id, token)));
  EXPECT_TRUE(absl::IsInvalidArgument(rig->Complete(first->id, {})));
  const absl::Status too_many = rig->Complete(first->id, two);
  EXPECT_TRUE(absl::IsInvalidArgument(too_many));
  EXPECT_EQ(too_many.message(), absl::StrCat("step ", first->id.value(),
                                             " samples 1 tokens, 2 given"));
  rig.Check();
  EXPECT_TRUE(rig->Complete(first->id, token).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->Complete(first->id, token)));
  EXPECT_TRUE(rig->Complete(second->id, token).ok());
  rig.Check();
}

TEST(BatchSchedulerTest, NothingToDoIsAnEmptyStep) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  const auto step = rig->Schedule();
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(step->empty());
  EXPECT_EQ(rig.cache().Stats().steps_committed, 0u);
  EXPECT_FALSE(rig->TakeFinished().has_value());
}

TEST(BatchSchedulerTest, SaysSoIfOthersHoldTheCache) {
  SchedulerRig rig(SmallCache(8, 4), PlainOptions());
  const auto other = rig.cache().Allocate(Prompt(99, 28));
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(rig.cache().Retire(other->step).ok());
  ASSERT_TRUE(rig.Submit(1, 8, 2).ok());
  const absl::Status status = rig->Schedule().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(status.message().find("1 waiting"), std::string::npos) << status;
  ASSERT_TRUE(rig.cache().Free(other->id).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerTest, SurvivesThatOthersFreeItsSequence) {
  SchedulerRig rig(SmallCache(16, 4), PlainOptions());
  ASSERT_TRUE(rig.Submit(1, 8, 9).ok());
  const std::vector<WorkItem> items = rig.Step();
  ASSERT_TRUE(rig.cache().Free(items[0].sequence).ok());
  EXPECT_FALSE(rig->CheckInvariants().ok());
  const absl::Status status = rig->Schedule().status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_NE(status.message().find("request 1 sample 0"), std::string::npos);
  ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
  ASSERT_TRUE(rig.Submit(2, 8, 2).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerTest, DestructionFreesItsSequences) {
  auto cache = KvCacheManager::Create(SmallCache(16, 4));
  ASSERT_TRUE(cache.ok());
  ManualClock clock;
  auto scheduler = BatchScheduler::Create(cache->get(), &clock, PlainOptions());
  ASSERT_TRUE(scheduler.ok());
  GenerationRequest request;
  const std::vector<TokenId> prompt = Prompt(1, 8);
  request.prompt = prompt;
  request.max_output_tokens = 4;
  ASSERT_TRUE((*scheduler)->Submit(request).ok());
  const auto step = (*scheduler)->Schedule();
  ASSERT_TRUE(step.ok());
  const StepId id = step->id;
  scheduler->reset();
  EXPECT_EQ((*cache)->Stats().sequences, 0u);
  ASSERT_TRUE((*cache)->Retire(id).ok());
  EXPECT_EQ((*cache)->AvailableBlocks(GroupId(0)), BlockCount(16));
  EXPECT_TRUE((*cache)->CheckInvariants().ok());
}

TEST(BatchSchedulerTest, CreateChecksItsArguments) {
  auto cache = KvCacheManager::Create(SmallCache(16, 4));
  ASSERT_TRUE(cache.ok());
  ManualClock clock;
  const auto code = [&](const BatchSchedulerOptions& options) {
    return BatchScheduler::Create(cache->get(), &clock, options)
        .status()
        .code();
  };
  const auto with = [](auto set) {
    BatchSchedulerOptions options = PlainOptions();
    set(options);
    return options;
  };
  constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;
  using O = BatchSchedulerOptions;
  EXPECT_EQ(code(PlainOptions()), absl::StatusCode::kOk);
  EXPECT_EQ(code(with([](O& o) { o.max_requests = 0; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_batch_sequences = 0; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_batch_sequences = 33; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_batch_tokens = 0; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_batch_tokens = 31; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_batch_tokens = 32; })),
            absl::StatusCode::kOk);
  EXPECT_EQ(code(with([](O& o) { o.max_chunk_tokens = 2049; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_steps_in_flight = 0; })), kBad);
  EXPECT_EQ(code(with([](O& o) { o.max_steps_in_flight = 3; })), kBad);
  EXPECT_EQ(
      code(with([](O& o) { o.priority_head_start = -absl::Nanoseconds(1); })),
      kBad);
  EXPECT_EQ(
      BatchScheduler::Create(nullptr, &clock, PlainOptions()).status().code(),
      kBad);
  EXPECT_EQ(BatchScheduler::Create(cache->get(), nullptr, PlainOptions())
                .status()
                .code(),
            kBad);
}

}  // namespace
}  // namespace paged_kv
