// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_completion.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_lifecycle.h"
#include "paged_kv/batch_scheduler_speculation.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;

// Why a sample would end with `token` as its output behind `outputs` others;
// kUnfinished if it would not.
FinishReason EndsWith(const RequestState& request, size_t outputs,
                      TokenId token) {
  if (std::find(request.stop_tokens.begin(), request.stop_tokens.end(),
                token) != request.stop_tokens.end()) {
    return FinishReason::kStopToken;
  }
  return outputs + 1 == request.max_output_tokens ? FinishReason::kMaxTokens
                                                  : FinishReason::kUnfinished;
}

size_t OutputsOf(const RequestState& request, const SampleState& sample) {
  return sample.tokens.size() - request.prompt_tokens;
}

// Hands a sample its next output.
absl::Status AddOutput(SchedulerState* state, SampleRef ref, TokenId token) {
  RequestState& request = state->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  if (sample.phase == Phase::kEnded) return absl::OkStatus();
  const FinishReason end = EndsWith(request, OutputsOf(request, sample), token);
  const uint32_t place = static_cast<uint32_t>(sample.tokens.size());
  PAGED_KV_CHECK(place < sample.tokens.capacity());
  sample.tokens.push_back(token);
  sample.drafts.clear();
  ++state->stats.output_tokens;
  if (request.timing.first_token == absl::InfiniteFuture()) {
    request.timing.first_token = state->Now();
  }
  absl::Status status;
  // The next step, already in flight, was planned without the value. That of
  // an accepted draft is known.
  if (sample.phase == Phase::kRunning && sample.scheduled > place &&
      sample.known == place) {
    status = state->cache->SetTokens(sample.sequence, TokenPos(place),
                                     absl::MakeConstSpan(&token, 1));
    sample.known = place + 1;
  }
  if (end != FinishReason::kUnfinished) EndSample(state, ref, end);
  return status;
}

// The prompt of a request with several samples is written: gives each sample
// that will go on a sequence of its own. `tokens` [samples]: first outputs.
void ForkSamples(SchedulerState* state, uint32_t slot,
                 absl::Span<const TokenId> tokens) {
  RequestState& request = state->requests.at(slot);
  const SampleState& trunk = request.samples[0];
  for (uint32_t i = 1; i < request.num_samples(); ++i) {
    SampleState& sample = request.samples[i];
    if (EndsWith(request, 0, tokens[i]) != FinishReason::kUnfinished) continue;
    if (trunk.phase == Phase::kRunning) {
      const absl::StatusOr<SequenceId> fork =
          state->cache->Fork(trunk.sequence);
      if (fork.ok()) {
        AddFork(state, {slot, i}, *fork);
        continue;
      }
    }
    // Without a sequence to fork, the sample finds the prompt in the cache.
    ++state->stats.failed_forks;
    sample.computed_before = request.prompt_tokens;
    EnqueueSample(state, {slot, i});
  }
  request.forked = true;
}

// The sample that an item belongs to; nullptr if its request has been taken.
SampleState* OwnerOf(SchedulerState* state, const ItemOwner& owner) {
  const RequestState& request = state->requests.at(owner.ref.request);
  if (!request.in_use || request.generation != owner.generation) return nullptr;
  return &state->requests.at(owner.ref);
}

void LeaveFlight(const WorkItem& item, SampleState* sample) {
  --sample->items_in_flight;
  if (item.outputs > 0) --sample->outputs_in_flight;
  if (!item.drafts.empty()) sample->drafts_in_flight = 0;
}

// Outputs that count, of `tokens` [drafts + 1]: those up to the first one that
// ends the sample or is not what its draft guessed.
uint32_t CountOutputs(const RequestState& request, const SampleState& sample,
                      absl::Span<const TokenId> drafts,
                      absl::Span<const TokenId> tokens) {
  const size_t before = OutputsOf(request, sample);
  uint32_t i = 0;
  while (i < drafts.size() && tokens[i] == drafts[i] &&
         EndsWith(request, before + i, tokens[i]) ==
             FinishReason::kUnfinished) {
    ++i;
  }
  return i + 1;
}

// An item with drafts has run. `tokens` [item.outputs].
absl::Status CompleteDrafts(SchedulerState* state, const WorkItem& item,
                            SampleRef ref, absl::Span<const TokenId> tokens) {
  RequestState& request = state->requests.at(ref.request);
  const SampleState& sample = request.samples[ref.sample];
  const uint32_t outputs = CountOutputs(request, sample, item.drafts, tokens);
  const uint32_t accepted = outputs - 1;
  request.costs.drafted_tokens += item.drafts.size();
  request.costs.accepted_tokens += accepted;
  state->stats.drafted_tokens += item.drafts.size();
  state->stats.accepted_tokens += accepted;
  absl::Status status;
  if (sample.phase == Phase::kRunning) {
    status = KeepDrafts(state, ref, item.drafts, accepted);
  }
  for (const TokenId token : tokens.first(outputs)) {
    status.Update(AddOutput(state, ref, token));
  }
  return status;
}

// Takes note of an item that has run. `tokens` [item.outputs]: its outputs.
absl::Status CompleteItem(SchedulerState* state, const WorkItem& item,
                          SampleRef ref, absl::Span<const TokenId> tokens) {
  RequestState& request = state->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  LeaveFlight(item, &sample);
  // Preempted in flight: it can be admitted again now.
  if (sample.phase == Phase::kWaiting) state->admission_open = true;
  if (sample.phase == Phase::kEnded) return absl::OkStatus();
  if (sample.phase == Phase::kRunning) {
    sample.written = item.first_new.value() + item.new_tokens.value();
  }
  if (item.outputs == 0) {
    if (request.max_output_tokens == 0 &&
        sample.written == request.prompt_tokens) {
      EndRequest(state, ref.request, FinishReason::kMaxTokens);
    }
    return absl::OkStatus();
  }
  if (!item.drafts.empty()) return CompleteDrafts(state, item, ref, tokens);
  if (request.forked) return AddOutput(state, ref, tokens[0]);
  ForkSamples(state, ref.request, tokens);
  absl::Status status;
  for (uint32_t i = 0; i < request.num_samples(); ++i) {
    status.Update(AddOutput(state, {ref.request, i}, tokens[i]));
  }
  return status;
}

absl::Status CheckCompletes(const SchedulerState& state, StepId step,
                            size_t tokens) {
  if (state.steps.empty() || state.steps.oldest().id != step) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", step.value(), " cannot complete: ",
        state.steps.empty() ? std::string("no step is in flight")
                            : absl::StrCat("the oldest in flight is step ",
                                           state.steps.oldest().id.value())));
  }
  if (tokens != state.steps.oldest().outputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "step ", step.value(), " samples ", state.steps.oldest().outputs,
        " tokens, ", tokens, " given"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CompleteStep(SchedulerState* state, StepId id,
                          absl::Span<const TokenId> tokens) {
  PAGED_KV_RETURN_IF_ERROR(CheckCompletes(*state, id, tokens.size()));
  PAGED_KV_RETURN_IF_ERROR(state->cache->Retire(id));
  // No longer in flight, so that what ends now is not put into its quarantine
  // again; its items stay where they are until the next Push().
  const StepInFlight& step = state->steps.oldest();
  state->steps.PopOldest();
  absl::Status status;
  for (size_t i = 0; i < step.items.size(); ++i) {
    const WorkItem& item = step.items[i];
    const ItemOwner& owner = step.owners[i];
    // A prompt's blocks are shareable now: somebody may find them.
    if (item.new_tokens > TokenCount(1)) state->admission_open = true;
    if (OwnerOf(state, owner) != nullptr) {
      status.Update(
          CompleteItem(state, item, owner.ref, tokens.first(item.outputs)));
    }
    tokens.remove_prefix(item.outputs);
  }
  return status;
}

absl::Status AbandonSteps(SchedulerState* state) {
  // Freed before its step retires, a sequence shares nothing of it.
  for (size_t i = 0; i < state->steps.size(); ++i) {
    for (const ItemOwner& owner : state->steps.at(i).owners) {
      const SampleState* sample = OwnerOf(state, owner);
      if (sample == nullptr || sample->phase != Phase::kRunning) continue;
      PreemptSample(state, owner.ref);
    }
  }
  while (!state->steps.empty()) {
    const StepInFlight& step = state->steps.oldest();
    PAGED_KV_RETURN_IF_ERROR(state->cache->Retire(step.id));
    state->steps.PopOldest();
    for (size_t i = 0; i < step.items.size(); ++i) {
      SampleState* sample = OwnerOf(state, step.owners[i]);
      if (sample != nullptr) LeaveFlight(step.items[i], sample);
    }
    ++state->stats.abandoned_steps;
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal
