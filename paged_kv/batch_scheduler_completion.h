// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_COMPLETION_H_
#define PAGED_KV_BATCH_SCHEDULER_COMPLETION_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// BatchScheduler::Complete().
absl::Status CompleteStep(SchedulerState* state, StepId step,
                          absl::Span<const TokenId> tokens);

// BatchScheduler::AbandonStepsInFlight().
absl::Status AbandonSteps(SchedulerState* state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_COMPLETION_H_
