// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_step_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_admission.h"
#include "paged_kv/batch_scheduler_device.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_preemption.h"
#include "paged_kv/batch_scheduler_speculation.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {

StepBuilder::StepBuilder(SchedulerState* state)
    : state_(state), draft_(state, state->options.max_batch_sequences) {}

absl::StatusOr<ScheduledStep> StepBuilder::Build() {
  if (state_->steps.full()) {
    return absl::FailedPreconditionError(absl::StrCat(
        state_->steps.size(), " of ", state_->options.max_steps_in_flight,
        " steps are in flight: complete step ",
        state_->steps.oldest().id.value(), " first"));
  }
  for (;;) {
    state_->device_changed = false;
    PAGED_KV_ASSIGN_OR_RETURN(const std::optional<ScheduledStep> step,
                              TryToBuild());
    if (step.has_value()) return *step;
    // Room that was made after others had asked for it is theirs now.
    if (!state_->device_changed) break;
  }
  PAGED_KV_RETURN_IF_ERROR(ExplainNothing());
  return ScheduledStep{};
}

absl::StatusOr<std::optional<ScheduledStep>> StepBuilder::TryToBuild() {
  PAGED_KV_RETURN_IF_ERROR(ServeDevice(state_));
  DraftRunning();
  StepPlan plan;
  if (!draft_.empty()) {
    PAGED_KV_ASSIGN_OR_RETURN(plan, PlanRunning());
  }
  if (!crowded_ && tokens_left_ > 0 && AdmissionWorthwhile(*state_)) {
    PAGED_KV_ASSIGN_OR_RETURN(const bool plan_again,
                              AddAdmissions(state_, &draft_, tokens_left_));
    if (plan_again && !draft_.empty()) {
      PAGED_KV_ASSIGN_OR_RETURN(plan, draft_.Plan());
    }
  }
  if (draft_.empty() || plan.view().sequences.empty()) {
    return std::optional<ScheduledStep>();
  }
  PAGED_KV_RETURN_IF_ERROR(AddDrafts(&plan));
  PAGED_KV_ASSIGN_OR_RETURN(const ScheduledStep step, Commit(std::move(plan)));
  return std::optional<ScheduledStep>(step);
}

void StepBuilder::DraftRunning() {
  draft_.Clear();
  crowded_ = false;
  device_relieved_ = false;
  tokens_left_ = state_->options.max_batch_tokens;
  for (const bool decodes : {true, false}) {
    for (const RankedSample& entry : state_->running) {
      const RequestState& request = state_->requests.at(entry.ref.request);
      const SampleState& sample = request.samples[entry.ref.sample];
      if (!request.CanRun(sample)) continue;
      if (!CanRunHere(*state_, entry.ref)) continue;
      if ((sample.Pending() == 1) != decodes) continue;
      const uint32_t tokens = std::min(
          {sample.Pending(), state_->options.max_chunk_tokens, tokens_left_});
      if (tokens == 0) return;
      draft_.Add({entry.ref, tokens});
      tokens_left_ -= tokens;
    }
  }
}

absl::StatusOr<StepPlan> StepBuilder::PlanRunning() {
  for (bool may_preempt = true;;) {
    if (draft_.empty()) return StepPlan();
    PAGED_KV_ASSIGN_OR_RETURN(StepPlan plan, draft_.Plan());
    if (RelieveDevice()) continue;
    PAGED_KV_ASSIGN_OR_RETURN(const std::optional<RankedSample> loser,
                              BestWithoutRoom());
    if (!loser.has_value()) return plan;
    crowded_ = true;
    const Relief relief = may_preempt ? MakeRoom(state_, *loser) : Relief{};
    if (!relief.victim.has_value()) {
      CountStalls(Shortage::kHostBlocks);
      return plan;
    }
    draft_.Erase(*relief.victim);
    if (relief.kind != Relief::Kind::kNow) may_preempt = false;
  }
}

absl::Status StepBuilder::AddDrafts(StepPlan* plan) {
  if (crowded_ || !ChooseDrafts(*state_, &draft_)) return absl::OkStatus();
  PAGED_KV_ASSIGN_OR_RETURN(*plan, draft_.Plan());
  if (draft_.AllFit()) return absl::OkStatus();
  for (size_t i = 0; i < draft_.size(); ++i) draft_.SetDrafts(i, 0);
  PAGED_KV_ASSIGN_OR_RETURN(*plan, draft_.Plan());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RankedSample>> StepBuilder::BestWithoutRoom()
    const {
  std::optional<RankedSample> best;
  for (size_t i = 0; i < draft_.size(); ++i) {
    const absl::Status& outcome = draft_.outcome(i);
    if (outcome.ok()) continue;
    const SampleRef ref = draft_.item(i).ref;
    if (!absl::IsResourceExhausted(outcome)) {
      return absl::Status(
          outcome.code(),
          absl::StrCat("request ", state_->requests.at(ref.request).id.value(),
                       " sample ", ref.sample,
                       " cannot go on: ", outcome.message()));
    }
    const RankedSample ranked = state_->requests.Ranked(ref);
    if (!best.has_value() || ranked < *best) best = ranked;
  }
  return best;
}

bool StepBuilder::RelieveDevice() {
  if (!state_->on_device) return false;
  std::optional<RankedSample> best;
  for (size_t i = 0; i < draft_.size(); ++i) {
    if (ShortageOf(draft_.outcome(i)) != Shortage::kDevicePages) continue;
    const RankedSample ranked = state_->requests.Ranked(draft_.item(i).ref);
    if (!best.has_value() || ranked < *best) best = ranked;
  }
  bool again = draft_.EraseLacking(Shortage::kTransfers);
  if (!best.has_value()) return again;
  Relief relief;
  if (!device_relieved_) relief = MakeDeviceRoom(state_, *best);
  if (relief.kind != Relief::Kind::kNow) {
    device_relieved_ = true;
    CountStalls(Shortage::kDevicePages);
    draft_.EraseLacking(Shortage::kDevicePages);
  }
  draft_.EraseStopped();
  return true;
}

void StepBuilder::CountStalls(Shortage shortage) {
  for (size_t i = 0; i < draft_.size(); ++i) {
    if (ShortageOf(draft_.outcome(i)) != shortage) continue;
    const SampleRef ref = draft_.item(i).ref;
    SampleState& sample = state_->requests.at(ref);
    // Not so if it had to make room itself.
    if (sample.phase != SampleState::Phase::kRunning) continue;
    if (!CanRunHere(*state_, ref)) continue;
    ++sample.stalls_in_a_row;
    sample.lacks_pages = shortage == Shortage::kDevicePages;
    ++state_->stats.stalls;
  }
}

absl::StatusOr<ScheduledStep> StepBuilder::Commit(StepPlan plan) {
  PAGED_KV_ASSIGN_OR_RETURN(const StepId id,
                            state_->cache->Commit(std::move(plan)));
  PAGED_KV_ASSIGN_OR_RETURN(const StepView view, state_->cache->View(id));
  StepInFlight& step = state_->steps.Push();
  step.id = id;
  for (const PlannedSequence& planned : view.sequences) Record(planned, &step);
  if (state_->on_device) {
    state_->transfers.Add(view.transfers, /*for_room=*/false);
  }
  ++state_->stats.steps;
  state_->stats.computed_tokens += step.new_tokens.value();
  return ScheduledStep{id, step.items, step.outputs, step.new_tokens,
                       step.draft_tokens};
}

void StepBuilder::Record(const PlannedSequence& planned, StepInFlight* step) {
  const SampleRef ref = draft_.item(planned.request).ref;
  if (planned.kind == StepRequest::Kind::kAdmit) {
    AdmitSample(state_, ref, planned.id, planned.cached_tokens.value());
  }
  RequestState& request = state_->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  const uint32_t first = planned.first_new.value();
  const uint32_t end = first + planned.new_tokens.value();
  PAGED_KV_CHECK(first == sample.scheduled);
  PAGED_KV_CHECK(end <= sample.Length());
  // With three steps in flight even the first token may have no value yet.
  const auto values = static_cast<uint32_t>(sample.tokens.size());
  const uint32_t known_first = std::min(first, values);
  const uint32_t known_end = std::min(end, values);

  WorkItem item;
  item.request = request.id;
  item.sample = ref.sample;
  item.sequence = planned.id;
  if (sample.place == SampleState::Place::kDevice) item.tier = Tier::kDevice;
  item.first_new = planned.first_new;
  item.new_tokens = planned.new_tokens;
  item.tokens = absl::MakeConstSpan(sample.tokens)
                    .subspan(known_first, known_end - known_first);
  item.outputs = end == sample.Length() ? request.OutputsAtEnd() : 0;
  item.drafts = absl::MakeConstSpan(sample.drafts)
                    .first(draft_.item(planned.request).drafts);
  item.outputs += static_cast<uint32_t>(item.drafts.size());
  step->items.push_back(item);
  step->owners.push_back({ref, request.generation});
  step->outputs += item.outputs;
  step->new_tokens += item.new_tokens;
  step->draft_tokens += planned.lookahead;

  const uint32_t again = first < sample.computed_before
                             ? std::min(end, sample.computed_before) - first
                             : 0;
  request.costs.computed_tokens += planned.new_tokens.value();
  request.costs.recomputed_tokens += again;
  state_->stats.recomputed_tokens += again;
  sample.scheduled = end;
  sample.known = std::max(sample.known, known_end);
  ++sample.items_in_flight;
  sample.outputs_in_flight += item.outputs > 0 ? 1 : 0;
  sample.drafts_in_flight = static_cast<uint32_t>(item.drafts.size());
  sample.stalls_in_a_row = 0;
  sample.lacks_pages = false;
}

absl::Status StepBuilder::ExplainNothing() const {
  if (!state_->steps.empty()) return absl::OkStatus();
  if (!state_->transfers.empty()) return absl::OkStatus();
  if (state_->running.empty() && state_->waiting.empty()) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      state_->running.size(), " running and ", state_->waiting.size(),
      " waiting sequences, but nobody can go on with the ",
      state_->AvailableBlocks(), " blocks available",
      state_->on_device ? " and the pages of the device" : "",
      ": others hold the cache's blocks or sequences"));
}

}  // namespace paged_kv::internal
