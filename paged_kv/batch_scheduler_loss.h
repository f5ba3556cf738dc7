// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_LOSS_H_
#define PAGED_KV_BATCH_SCHEDULER_LOSS_H_

#include "absl/status/statusor.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/cache_results.h"

namespace paged_kv::internal {

// BatchScheduler::LoseDevice(). O(pages on the device + table entries).
absl::StatusOr<DeviceLoss> LoseDevice(SchedulerState* state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_LOSS_H_
