// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_step_draft.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_swap.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {

bool CanRunHere(const SchedulerState& state, SampleRef ref) {
  const SampleState& sample = state.requests.at(ref);
  return !WantsDevice(state, ref) ||
         (sample.place == SampleState::Place::kDevice && !sample.leaving);
}

StepDraft::StepDraft(SchedulerState* state, size_t max_items)
    : state_(state), outcomes_(max_items) {
  items_.reserve(max_items);
  requests_.reserve(max_items);
}

void StepDraft::Erase(SampleRef ref) {
  items_.erase(
      std::remove_if(items_.begin(), items_.end(),
                     [ref](const DraftItem& item) { return item.ref == ref; }),
      items_.end());
}

void StepDraft::MakeRequest(const DraftItem& item, StepRequest* request) const {
  const RequestState& owner = state_->requests.at(item.ref.request);
  const SampleState& sample = owner.samples[item.ref.sample];
  *request = StepRequest{};
  request->new_tokens = TokenCount(item.tokens);
  request->lookahead = TokenCount(item.drafts);
  const absl::Span<const TokenId> tokens = absl::MakeConstSpan(sample.tokens);
  if (sample.phase == SampleState::Phase::kWaiting) {
    request->kind = StepRequest::Kind::kAdmit;
    request->tokens = tokens;
    request->extras = owner.extras;
    request->priority = owner.cache_priority;
    request->share = owner.share && !sample.distrusts_cache;
    return;
  }
  request->id = sample.sequence;
  // The cache has the prompt's values; of outputs, those that it has been told.
  const uint32_t end = sample.scheduled + item.tokens;
  if (end > sample.known && tokens.size() > sample.known) {
    request->tokens = tokens.subspan(sample.known, end - sample.known);
  }
}

bool StepDraft::EraseLacking(Shortage shortage) {
  size_t kept = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (ShortageOf(outcomes_[i]) == shortage) continue;
    items_[kept] = items_[i];
    outcomes_[kept++] = std::move(outcomes_[i]);
  }
  const bool erased = kept < items_.size();
  items_.resize(kept);
  return erased;
}

bool StepDraft::AllFit() const {
  return std::all_of(outcomes_.begin(),
                     outcomes_.begin() + static_cast<ptrdiff_t>(items_.size()),
                     [](const absl::Status& outcome) { return outcome.ok(); });
}

void StepDraft::EraseStopped() {
  items_.erase(std::remove_if(
                   items_.begin(), items_.end(),
                   [this](const DraftItem& item) {
                     const SampleState& sample = state_->requests.at(item.ref);
                     return sample.phase != SampleState::Phase::kRunning ||
                            !CanRunHere(*state_, item.ref);
                   }),
               items_.end());
}

absl::StatusOr<StepPlan> StepDraft::PlanRequests() {
  return state_->cache->PlanFitting(
      requests_, absl::MakeSpan(outcomes_).first(requests_.size()));
}

absl::StatusOr<StepPlan> StepDraft::Plan() {
  requests_.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    MakeRequest(items_[i], &requests_[i]);
  }
  return PlanRequests();
}

absl::Status StepDraft::Probe(uint32_t growth_tokens) {
  requests_.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    MakeRequest(items_[i], &requests_[i]);
    const RequestState& owner = state_->requests.at(items_[i].ref.request);
    const SampleState& sample = owner.samples[items_[i].ref.sample];
    const uint64_t base = state_->has_windows
                              ? sample.scheduled + items_[i].tokens
                              : sample.Length();
    const uint64_t wanted = base + uint64_t{growth_tokens} * owner.Seats();
    requests_[i].reserve_tokens = TokenCount(static_cast<uint32_t>(
        std::min<uint64_t>(wanted, owner.MaxStoredTokens())));
  }
  return PlanRequests().status();
}

}  // namespace paged_kv::internal
