// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How samples change their phase:
//
//             Admit                   EndSample
//   kWaiting --------> kRunning -------------------> kEnded
//      ^  <--------------  ^                           ^
//      |      Preempt      |                           |
//      +-------------------+---- kUnborn --------------+
//           EnqueueSample, AddFork

#ifndef PAGED_KV_BATCH_SCHEDULER_LIFECYCLE_H_
#define PAGED_KV_BATCH_SCHEDULER_LIFECYCLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Notes that blocks were given back, which others may have waited for.
void NoteRelease(SchedulerState* state);

// Puts an unborn sample into the queue.
void EnqueueSample(SchedulerState* state, SampleRef ref);

// A waiting sample has become `sequence`, `cached_tokens` of which were found.
void AdmitSample(SchedulerState* state, SampleRef ref, SequenceId sequence,
                 uint32_t cached_tokens);

// An unborn sample has become `sequence`, a fork whose prompt is written.
void AddFork(SchedulerState* state, SampleRef ref, SequenceId sequence);

// Gives a running sample's blocks back and puts it into the queue again. What
// is in flight for it still counts when it arrives.
void PreemptSample(SchedulerState* state, SampleRef ref);

// Counts a preemption, by recompute or by swap.
void CountPreemption(SchedulerState* state, SampleRef ref);

// Ends a sample in any phase but kEnded; the last one finishes its request.
void EndSample(SchedulerState* state, SampleRef ref, FinishReason reason);

// Ends all samples that have not ended.
void EndRequest(SchedulerState* state, uint32_t slot, FinishReason reason);

// Ends a request that the cache will never take.
void FailRequest(SchedulerState* state, uint32_t slot, absl::Status status);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_LIFECYCLE_H_
