// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_STEP_PLANNER_H_
#define PAGED_KV_STEP_PLANNER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// Works out a step into `record`. Nothing that a caller could see changes.
// If `outcomes` is empty, all requests are planned or the first refusal is
// returned; else refused requests are left out and outcomes[i] says why.
absl::Status PlanStep(CacheState* state, absl::Span<const StepRequest> requests,
                      absl::Span<absl::Status> outcomes, PlanRecord* record);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_STEP_PLANNER_H_
