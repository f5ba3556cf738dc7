// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_ADMISSION_H_
#define PAGED_KV_BATCH_SCHEDULER_ADMISSION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_step_draft.h"

namespace paged_kv::internal {

// Growth, in tokens per sequence, to leave room for when a sample joins that
// has been preempted so many times.
uint32_t GrowthReserveTokens(const BatchSchedulerOptions& options,
                             uint32_t preemptions);

// False if looking for admissions would only repeat the last refusal: nothing
// was given back, written or queued since. Keeps the steps of a full cache
// cheap.
bool AdmissionWorthwhile(const SchedulerState& state);

// Adds to `draft`, which holds what runs in this step, the waiting samples that
// shall join it, in the order of rank:
// - as long as there are seats and `token_budget` tokens left;
// - while the cache has room for all of them, for the whole prompts of all, and
//   for everybody's growth (BatchSchedulerOptions::growth_reserve_tokens); a
//   sample that does not fit holds up those behind it;
// - leaving out those that wait for a prefix.
// If nothing runs the first one need only fit itself. A request that the cache
// refuses for good is failed. The draft's last plan is void if this returns
// true.
absl::StatusOr<bool> AddAdmissions(SchedulerState* state, StepDraft* draft,
                                   uint32_t token_budget);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_ADMISSION_H_
