// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_DEVICE_H_
#define PAGED_KV_BATCH_SCHEDULER_DEVICE_H_

#include "absl/status/status.h"
#include "paged_kv/batch_scheduler_preemption.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"

namespace paged_kv::internal {

// Before a step: notes who has arrived on the device, takes those off it that
// were to leave once their step had run, and sends those who want to decode
// there, best rank first. Nobody overtakes one that finds no room. Does nothing
// where decodes run in host memory.
absl::Status ServeDevice(SchedulerState* state);

// Makes room on the device for a running sample that lacks pages there. Like
// MakeRoom(), but the worst-ranked sample on the device goes to host memory,
// and first what no sequence holds is written back. Nobody has to go while
// pages are on their way back anyway. If write-backs keep failing, the
// beneficiary's request is failed, which is Relief::Kind::kNow.
Relief MakeDeviceRoom(SchedulerState* state, const RankedSample& beneficiary);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_DEVICE_H_
