// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_completion.h"
#include "paged_kv/batch_scheduler_intake.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_loss.h"
#include "paged_kv/batch_scheduler_speculation.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_state_check.h"
#include "paged_kv/batch_scheduler_step_builder.h"
#include "paged_kv/batch_scheduler_swap.h"
#include "paged_kv/status_macros.h"

namespace paged_kv {
namespace internal {

class SchedulerCore {
 public:
  SchedulerCore(KvCacheManager* cache, const Clock* clock,
                const BatchSchedulerOptions& options)
      : state(cache, clock, options), builder(&state) {}

  SchedulerState state;
  StepBuilder builder;
};

}  // namespace internal

using internal::RequestState;
using internal::SampleRef;
using internal::SampleState;
using internal::SchedulerState;

namespace {

using Phase = SampleState::Phase;

absl::StatusOr<uint32_t> FindRequest(const SchedulerState& state,
                                     RequestId id) {
  const uint32_t slot = state.requests.Find(id);
  if (slot == internal::RequestTable::kNone) {
    return absl::NotFoundError(
        absl::StrCat("request ", id.value(), " is unknown or has been taken"));
  }
  return slot;
}

absl::StatusOr<SampleRef> FindSample(const SchedulerState& state, RequestId id,
                                     uint32_t sample) {
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindRequest(state, id));
  const uint32_t samples = state.requests.at(slot).num_samples();
  if (sample >= samples) {
    return absl::NotFoundError(absl::StrCat("request ", id.value(), " has ",
                                            samples, " samples, no sample ",
                                            sample));
  }
  return SampleRef{slot, sample};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchScheduler>> BatchScheduler::Create(
    KvCacheManager* cache, const Clock* clock,
    const BatchSchedulerOptions& options) {
  if (cache == nullptr || clock == nullptr) {
    return absl::InvalidArgumentError("a scheduler needs a cache and a clock");
  }
  PAGED_KV_RETURN_IF_ERROR(Validate(options, cache->options()));
  return std::unique_ptr<BatchScheduler>(new BatchScheduler(
      std::make_unique<internal::SchedulerCore>(cache, clock, options)));
}

BatchScheduler::BatchScheduler(std::unique_ptr<internal::SchedulerCore> core)
    : core_(std::move(core)) {}

BatchScheduler::~BatchScheduler() {
  const SchedulerState& state = core_->state;
  for (const internal::RankedSample& entry : state.running) {
    // One that somebody else has freed is not there any more: fine.
    state.cache->Free(state.requests.at(entry.ref).sequence).IgnoreError();
  }
}

absl::Status BatchScheduler::Submit(const GenerationRequest& request) {
  return internal::SubmitRequest(&core_->state, request);
}

absl::Status BatchScheduler::Cancel(RequestId id) {
  SchedulerState& state = core_->state;
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindRequest(state, id));
  if (state.requests.at(slot).finished()) {
    return absl::FailedPreconditionError(
        absl::StrCat("request ", id.value(), " has finished"));
  }
  ++state.stats.cancelled;
  internal::EndRequest(&state, slot, FinishReason::kCancelled);
  return absl::OkStatus();
}

absl::Status BatchScheduler::Finish(RequestId id, uint32_t sample) {
  SchedulerState& state = core_->state;
  PAGED_KV_ASSIGN_OR_RETURN(const SampleRef ref, FindSample(state, id, sample));
  const RequestState& request = state.requests.at(ref.request);
  const SampleState& s = request.samples[sample];
  if (s.phase == Phase::kEnded || s.tokens.size() == request.prompt_tokens) {
    return absl::FailedPreconditionError(absl::StrCat(
        "request ", id.value(), " sample ", sample,
        s.phase == Phase::kEnded ? " has ended: " : " has no output yet: ",
        FinishReasonName(s.reason)));
  }
  internal::EndSample(&state, ref, FinishReason::kStopped);
  return absl::OkStatus();
}

absl::Status BatchScheduler::Propose(RequestId id, uint32_t sample,
                                     absl::Span<const TokenId> drafts) {
  PAGED_KV_ASSIGN_OR_RETURN(const SampleRef ref,
                            FindSample(core_->state, id, sample));
  return internal::ProposeDrafts(&core_->state, ref, drafts);
}

absl::StatusOr<ScheduledStep> BatchScheduler::Schedule() {
  return core_->builder.Build();
}

absl::Status BatchScheduler::Complete(StepId step,
                                      absl::Span<const TokenId> tokens) {
  return internal::CompleteStep(&core_->state, step, tokens);
}

absl::Status BatchScheduler::AbandonStepsInFlight() {
  return internal::AbandonSteps(&core_->state);
}

absl::Span<const TierTransfer> BatchScheduler::TakeTransfers() {
  return core_->state.transfers.Take();
}

absl::Status BatchScheduler::FinishTransfer(TransferId id, bool moved) {
  return internal::EndTransfer(&core_->state, id, moved);
}

absl::StatusOr<bool> BatchScheduler::ReadyToRun(StepId step) const {
  return internal::IsReadyToRun(core_->state, step);
}

absl::StatusOr<DeviceLoss> BatchScheduler::LoseDevice() {
  return internal::LoseDevice(&core_->state);
}

std::optional<FinishedRequest> BatchScheduler::TakeFinished() {
  SchedulerState& state = core_->state;
  if (state.finished.empty()) return std::nullopt;
  const uint32_t slot = state.finished.Pop();
  RequestState& request = state.requests.at(slot);
  FinishedRequest result;
  result.id = request.id;
  result.status = request.status;
  result.prompt_tokens = request.prompt_tokens;
  result.timing = request.timing;
  result.costs = request.costs;
  result.samples.reserve(request.samples.size());
  for (SampleState& sample : request.samples) {
    result.samples.push_back({sample.reason, std::move(sample.tokens)});
  }
  state.requests.Release(slot);
  return result;
}

absl::StatusOr<RequestProgress> BatchScheduler::Progress(RequestId id) const {
  const SchedulerState& state = core_->state;
  PAGED_KV_ASSIGN_OR_RETURN(const uint32_t slot, FindRequest(state, id));
  const RequestState& request = state.requests.at(slot);
  RequestProgress progress;
  for (const SampleState& sample : request.samples) {
    progress.samples_waiting += sample.phase == Phase::kWaiting ? 1 : 0;
    progress.samples_running += sample.phase == Phase::kRunning ? 1 : 0;
    progress.samples_ended += sample.phase == Phase::kEnded ? 1 : 0;
  }
  progress.timing = request.timing;
  progress.costs = request.costs;
  return progress;
}

absl::StatusOr<absl::Span<const TokenId>> BatchScheduler::Tokens(
    RequestId id, uint32_t sample) const {
  PAGED_KV_ASSIGN_OR_RETURN(const SampleRef ref,
                            FindSample(core_->state, id, sample));
  return absl::MakeConstSpan(core_->state.requests.at(ref).tokens);
}

absl::StatusOr<absl::Span<const TokenId>> BatchScheduler::Output(
    RequestId id, uint32_t sample) const {
  const SchedulerState& state = core_->state;
  PAGED_KV_ASSIGN_OR_RETURN(const SampleRef ref, FindSample(state, id, sample));
  return absl::MakeConstSpan(state.requests.at(ref).tokens)
      .subspan(state.requests.at(ref.request).prompt_tokens);
}

const BatchSchedulerOptions& BatchScheduler::options() const {
  return core_->state.options;
}

BatchSchedulerStats BatchScheduler::Stats() const {
  const SchedulerState& state = core_->state;
  BatchSchedulerStats stats = state.stats;
  stats.waiting = static_cast<uint32_t>(state.waiting.size());
  stats.running = static_cast<uint32_t>(state.running.size());
  stats.untaken = static_cast<uint32_t>(state.finished.size());
  stats.in_flight = static_cast<uint32_t>(state.steps.size());
  stats.transfers = static_cast<uint32_t>(state.transfers.size());
  for (const internal::RankedSample& entry : state.running) {
    const SampleState& sample = state.requests.at(entry.ref);
    stats.on_device += sample.place != SampleState::Place::kHost ? 1 : 0;
    stats.swapped_out +=
        sample.swapped_out && sample.place == SampleState::Place::kHost ? 1 : 0;
  }
  return stats;
}

absl::Status BatchScheduler::CheckInvariants() const {
  return internal::CheckState(core_->state);
}

}  // namespace paged_kv
