// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_INTAKE_H_
#define PAGED_KV_BATCH_SCHEDULER_INTAKE_H_

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_request.h"
#include "paged_kv/batch_scheduler_state.h"

namespace paged_kv::internal {

// BatchScheduler::Submit(). What passes here can run alone, so that it never
// blocks the queue.
absl::Status SubmitRequest(SchedulerState* state,
                           const GenerationRequest& request);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_INTAKE_H_
