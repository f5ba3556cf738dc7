// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_STEP_COMMIT_H_
#define PAGED_KV_STEP_COMMIT_H_

#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// Makes a plan true. Cannot fail. REQUIRES: nothing changed since PlanStep().
void CommitStep(CacheState* state, PlanRecord* record);

// The step's K/V is written: shares its full blocks, releases what fell out of
// windows and what was freed while it was the latest step.
// REQUIRES: the oldest step in flight.
void RetireStep(CacheState* state, PlanRecord* record);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_STEP_COMMIT_H_
