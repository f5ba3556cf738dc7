// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How running samples change between host memory and the device, where
// BatchSchedulerOptions::decode_tier is the device:
//
//            SwapSampleIn              SettleArrivals
//    kHost --------------> kArriving -----------------> kDevice
//      ^ <------------------- |                            |
//      |    a transfer failed |                            |
//      +----------------------+----------------------------+
//                          LeaveDevice

#ifndef PAGED_KV_BATCH_SCHEDULER_SWAP_H_
#define PAGED_KV_BATCH_SCHEDULER_SWAP_H_

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// The sample's next step is a decode, which runs on the device.
bool WantsDevice(const SchedulerState& state, SampleRef ref);

// Starts moving a sample to the device. The cache's error if it has no room.
// REQUIRES: it is in host memory, nothing of it is in flight.
absl::Status SwapSampleIn(SchedulerState* state, SampleRef ref);

// Notes which samples have arrived. One whose transfers failed is back in host
// memory; after max_transfer_failures times in a row its request is failed.
absl::Status SettleArrivals(SchedulerState* state);

// Takes a sample off the device: by swap, or by recompute where that is cheaper
// (BatchSchedulerOptions::recompute_token_bytes).
// REQUIRES: it is not in host memory, nothing of it is in flight.
void LeaveDevice(SchedulerState* state, SampleRef ref);

// BatchScheduler::FinishTransfer().
absl::Status EndTransfer(SchedulerState* state, TransferId id, bool moved);

// BatchScheduler::ReadyToRun().
absl::StatusOr<bool> IsReadyToRun(const SchedulerState& state, StepId step);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_SWAP_H_
