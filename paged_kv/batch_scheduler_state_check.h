// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STATE_CHECK_H_
#define PAGED_KV_BATCH_SCHEDULER_STATE_CHECK_H_

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_state.h"

namespace paged_kv::internal {

// The first broken invariant, or OK:
// 1. a request is in exactly one slot; it is finished exactly if all its
//    samples have ended, and then it is in the queue of finished ones, once;
// 2. a sample is in the waiting queue exactly if it waits, in the running set
//    exactly if it runs; both are sorted; the seats of all that run are within
//    max_batch_sequences;
// 3. the cache knows each running sample's sequence, with as many tokens,
//    written tokens and values as the scheduler believes, and equal values;
// 4. what samples have in flight is what the steps in flight say;
// 5. a sample on the device has all its K/V there, one in host memory is at
//    home there, one on its way has nothing in flight; only running ones are
//    anywhere else but in host memory;
// 6. as many transfers are in flight as are counted;
// 7. no sample has more outputs than it may have.
absl::Status CheckState(const SchedulerState& state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_STATE_CHECK_H_
