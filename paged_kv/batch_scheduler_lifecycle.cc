// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_lifecycle.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {
namespace {

using Phase = SampleState::Phase;

// A sample that holds blocks no longer does.
void ReleaseSequence(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  // Fails only for a sequence that somebody else has freed, and then there is
  // nothing left to give back.
  state->cache->Free(sample.sequence).IgnoreError();
  state->running.Erase(state->requests.Ranked(ref));
  NoteRelease(state);
  sample.sequence = SequenceId();
  sample.place = SampleState::Place::kHost;
  sample.leaving = false;
  sample.lacks_pages = false;
  sample.swapped_out = false;
  sample.scheduled = 0;
  sample.written = 0;
  sample.known = 0;
  sample.stalls_in_a_row = 0;
}

void StartRunning(SchedulerState* state, SampleRef ref, SequenceId sequence,
                  uint32_t computed_tokens) {
  SampleState& sample = state->requests.at(ref);
  sample.phase = Phase::kRunning;
  sample.sequence = sequence;
  sample.scheduled = computed_tokens;
  sample.written = computed_tokens;
  sample.awaited = AwaitedPrefix{};
  state->running.Insert(state->requests.Ranked(ref));
}

void FinishRequest(SchedulerState* state, uint32_t slot) {
  state->requests.at(slot).timing.finished = state->Now();
  state->finished.Push(slot);
  ++state->stats.finished;
}

}  // namespace

void NoteRelease(SchedulerState* state) {
  state->last_release =
      state->steps.empty() ? StepId(0) : state->steps.newest().id;
  state->admission_open = true;
  state->device_open = true;
}

void EnqueueSample(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_CHECK(sample.phase == Phase::kUnborn);
  sample.phase = Phase::kWaiting;
  state->waiting.Insert(state->requests.Ranked(ref));
  state->admission_open = true;
}

void AdmitSample(SchedulerState* state, SampleRef ref, SequenceId sequence,
                 uint32_t cached_tokens) {
  RequestState& request = state->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  PAGED_KV_CHECK(sample.phase == Phase::kWaiting);
  PAGED_KV_CHECK(sample.items_in_flight == 0);
  state->waiting.Erase(state->requests.Ranked(ref));
  StartRunning(state, ref, sequence, cached_tokens);
  sample.known = static_cast<uint32_t>(sample.tokens.size());
  if (request.timing.first_scheduled == absl::InfiniteFuture()) {
    request.timing.first_scheduled = state->Now();
    request.costs.cached_tokens = cached_tokens;
  }
}

void AddFork(SchedulerState* state, SampleRef ref, SequenceId sequence) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_CHECK(sample.phase == Phase::kUnborn);
  const uint32_t prompt_tokens = state->requests.at(ref.request).prompt_tokens;
  StartRunning(state, ref, sequence, prompt_tokens);
  sample.known = prompt_tokens;
}

void PreemptSample(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  PAGED_KV_CHECK(sample.phase == Phase::kRunning);
  // Whatever the cache has of it would have to be fetched in the same way.
  if (sample.swap_failures > state->options.max_transfer_failures) {
    sample.distrusts_cache = true;
  }
  sample.computed_before = std::max(sample.computed_before, sample.scheduled);
  ReleaseSequence(state, ref);
  sample.phase = Phase::kWaiting;
  state->waiting.Insert(state->requests.Ranked(ref));
  CountPreemption(state, ref);
}

void CountPreemption(SchedulerState* state, SampleRef ref) {
  SampleState& sample = state->requests.at(ref);
  ++sample.preemptions;
  ++state->requests.at(ref.request).costs.preemptions;
  ++state->stats.preemptions;
  state->stats.max_preemptions =
      std::max(state->stats.max_preemptions, sample.preemptions);
}

void EndSample(SchedulerState* state, SampleRef ref, FinishReason reason) {
  RequestState& request = state->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  PAGED_KV_CHECK(sample.phase != Phase::kEnded);
  if (sample.phase == Phase::kRunning) ReleaseSequence(state, ref);
  if (sample.phase == Phase::kWaiting) {
    state->waiting.Erase(state->requests.Ranked(ref));
    state->admission_open = true;
  }
  sample.phase = Phase::kEnded;
  sample.reason = reason;
  ++request.ended_samples;
  if (request.finished()) FinishRequest(state, ref.request);
}

void EndRequest(SchedulerState* state, uint32_t slot, FinishReason reason) {
  const uint32_t samples = state->requests.at(slot).num_samples();
  for (uint32_t i = 0; i < samples; ++i) {
    const SampleRef ref{slot, i};
    if (state->requests.at(ref).phase != Phase::kEnded) {
      EndSample(state, ref, reason);
    }
  }
}

void FailRequest(SchedulerState* state, uint32_t slot, absl::Status status) {
  state->requests.at(slot).status = std::move(status);
  ++state->stats.failed;
  EndRequest(state, slot, FinishReason::kFailed);
}

}  // namespace paged_kv::internal
