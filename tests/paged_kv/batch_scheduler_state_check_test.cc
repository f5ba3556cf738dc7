// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler's audit, which its other tests rely on, finds every kind of
// damage.

#include "paged_kv/batch_scheduler_state_check.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler_completion.h"
#include "paged_kv/batch_scheduler_intake.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_step_builder.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;

// Three seats. Request 1 has two samples, forked and running; request 2 runs,
// with a step in flight; request 3 waits; request 4 was cancelled and not
// taken.
class SchedulerStateCheckTest : public testing::Test {
 protected:
  SchedulerStateCheckTest() {
    cache_ = *KvCacheManager::Create(PoolOptions(64, 4));
    BatchSchedulerOptions options;
    options.max_requests = 8;
    options.max_batch_sequences = 3;
    options.max_batch_tokens = 64;
    state_ = std::make_unique<SchedulerState>(cache_.get(), &clock_, options);
    builder_ = std::make_unique<StepBuilder>(state_.get());
    Submit(1, 2);
    Step();
    Submit(2, 1);
    Submit(3, 1);
    Submit(4, 1);
    four_ = state_->requests.Find(RequestId(4));
    EndRequest(state_.get(), four_, FinishReason::kCancelled);
    one_ = state_->requests.Find(RequestId(1));
    two_ = state_->requests.Find(RequestId(2));
    three_ = state_->requests.Find(RequestId(3));
    const auto step = builder_->Build();
    EXPECT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(state_->running.size(), 3u);
    EXPECT_EQ(state_->waiting.size(), 1u);
    const absl::Status status = CheckState(*state_);
    EXPECT_TRUE(status.ok()) << status;
  }

  void Submit(uint64_t id, uint32_t samples) {
    const std::vector<TokenId> prompt = Text(static_cast<int32_t>(id), 6);
    GenerationRequest request;
    request.id = RequestId(id);
    request.prompt = prompt;
    request.samples = samples;
    request.max_output_tokens = 5;
    const absl::Status status = SubmitRequest(state_.get(), request);
    EXPECT_TRUE(status.ok()) << status;
  }
  void Step() {
    const auto step = builder_->Build();
    EXPECT_TRUE(step.ok()) << step.status();
    const std::vector<TokenId> sampled(step->outputs, 7);
    const absl::Status status = CompleteStep(state_.get(), step->id, sampled);
    EXPECT_TRUE(status.ok()) << status;
  }

  RequestState& request(uint32_t slot) { return state_->requests.at(slot); }
  SampleState& sample(uint32_t slot) { return request(slot).samples[0]; }

  void ExpectBroken(absl::string_view message) {
    const absl::Status status = CheckState(*state_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << message;
    EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  }

  ManualClock clock_;
  std::unique_ptr<KvCacheManager> cache_;
  std::unique_ptr<SchedulerState> state_;
  std::unique_ptr<StepBuilder> builder_;
  uint32_t one_ = 0, two_ = 0, three_ = 0, four_ = 0;
};

TEST_F(SchedulerStateCheckTest, RequestsThatAreNotInTheirSlot) {
  const RequestId id = std::exchange(request(two_).id, RequestId(99));
  ExpectBroken("request 2 is not in its slot");
  request(two_).id = id;
  request(two_).in_use = false;
  ExpectBroken("request 2 is not in its slot");
  request(two_).in_use = true;
  request(7).in_use = true;
  ExpectBroken("free slot 7 is used");
}

TEST_F(SchedulerStateCheckTest, FinishedRequestsThatAreNone) {
  state_->finished.Push(two_);
  ExpectBroken("request 2 sample 0: finished is 0, queued is 1");
}

TEST_F(SchedulerStateCheckTest, FinishedRequestsThatAreListedTwiceOrForgotten) {
  state_->finished.Push(four_);
  ExpectBroken("finished twice");
  state_->finished.Pop();
  EXPECT_TRUE(CheckState(*state_).ok());
  state_->finished.Pop();
  ExpectBroken("request 4 sample 0: finished is 1, queued is 0");
}

TEST_F(SchedulerStateCheckTest, FinishedSlotsThatAreFree) {
  state_->finished.Push(7);
  ExpectBroken("finished slot 7 is free");
}

TEST_F(SchedulerStateCheckTest, EndedSamplesThatAreNotCounted) {
  ++request(one_).ended_samples;
  ExpectBroken("request 1 sample 0: 0 samples ended, 1 counted");
}

TEST_F(SchedulerStateCheckTest, PhasesThatDoNotMatchTheLists) {
  sample(three_).phase = Phase::kUnborn;
  ExpectBroken("0 samples are waiting, 1 listed");
  sample(three_).phase = Phase::kRunning;
  sample(two_).phase = Phase::kWaiting;
  ExpectBroken("is listed as waiting and is not");
}

TEST_F(SchedulerStateCheckTest, RanksThatChange) {
  ++request(three_).rank.number;
  ExpectBroken("request 3 sample 0: its rank changed");
  request(three_).rank.number -= 2;
  ExpectBroken("request 3 sample 0: its rank changed");
}

TEST_F(SchedulerStateCheckTest, MoreSeatsThanThereAre) {
  request(one_).forked = false;  // each of its samples would take two
  ExpectBroken("5 seats taken of 3");
}

TEST_F(SchedulerStateCheckTest, ItemsInFlightThatNoStepHas) {
  SampleState& two = sample(two_);
  ++two.items_in_flight;
  ExpectBroken("2 items, 1 outputs and 0 drafts in flight; steps have 1, 1");
  --two.items_in_flight;
  --two.outputs_in_flight;
  ExpectBroken("1 items, 0 outputs and 0 drafts in flight; steps have 1, 1");
  ++two.outputs_in_flight;
  two.drafts_in_flight = 2;
  ExpectBroken("1 outputs and 2 drafts in flight; steps have 1, 1 and 0");
  two.drafts_in_flight = 0;
  ++request(two_).generation;
  ExpectBroken("1 items, 1 outputs and 0 drafts in flight; steps have 0, 0");
}

TEST_F(SchedulerStateCheckTest, MoreDraftsThanTheOptionsAllow) {
  sample(three_).drafts = {1};
  ExpectBroken("request 3 sample 0: 1 drafts, at most 0");
}

TEST_F(SchedulerStateCheckTest, TooFewOrTooManyTokens) {
  sample(three_).tokens.pop_back();
  ExpectBroken("request 3 sample 0: 5 tokens and 0 in flight; prompt 6");
  sample(three_).tokens.resize(12);
  ExpectBroken("request 3 sample 0: 12 tokens and 0 in flight; prompt 6");
}

TEST_F(SchedulerStateCheckTest, MoreWrittenThanScheduledThanThereIs) {
  sample(two_).written = 7;
  ExpectBroken("request 2 sample 0: written 7, scheduled 6 of 7");
  sample(two_).scheduled = 8;
  ExpectBroken("request 2 sample 0: written 7, scheduled 8 of 7");
}

TEST_F(SchedulerStateCheckTest, SamplesThatTheCacheKnowsOtherwise) {
  sample(two_).scheduled = 5;
  ExpectBroken("scheduled, written, known are 5, 0, 6, in the cache 6, 0, 6");
  sample(two_).scheduled = 6;
  sample(two_).written = 1;
  ExpectBroken("scheduled, written, known are 6, 1, 6, in the cache 6, 0, 6");
  sample(two_).written = 0;
  --sample(two_).known;
  ExpectBroken("scheduled, written, known are 6, 0, 5, in the cache 6, 0, 6");
  ++sample(two_).known;
  ++sample(two_).tokens[2];
  ExpectBroken("request 2 sample 0: the cache has other tokens");
}

TEST_F(SchedulerStateCheckTest, FewerTokensThanTheCacheHas) {
  // Its seventh token, the first output, is computed by the step in flight.
  sample(one_).tokens.pop_back();
  ExpectBroken("request 1 sample 0: the cache has other tokens");
}

TEST_F(SchedulerStateCheckTest, SequencesThatAreGone) {
  ASSERT_TRUE(cache_->Free(sample(two_).sequence).ok());
  EXPECT_EQ(CheckState(*state_).code(), absl::StatusCode::kNotFound);
}

TEST_F(SchedulerStateCheckTest, WaitingSamplesWithASequence) {
  for (uint32_t SampleState::*field :
       {&SampleState::scheduled, &SampleState::written, &SampleState::known}) {
    sample(three_).*field = 1;
    ExpectBroken("request 3 sample 0: has no sequence, but");
    sample(three_).*field = 0;
  }
  EXPECT_TRUE(CheckState(*state_).ok());
}

}  // namespace
}  // namespace paged_kv::internal
