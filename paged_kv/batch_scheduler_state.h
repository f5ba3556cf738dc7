// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STATE_H_
#define PAGED_KV_BATCH_SCHEDULER_STATE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "paged_kv/batch_scheduler_clock.h"
#include "paged_kv/batch_scheduler_options.h"
#include "paged_kv/batch_scheduler_request_table.h"
#include "paged_kv/batch_scheduler_ring_queue.h"
#include "paged_kv/batch_scheduler_running_set.h"
#include "paged_kv/batch_scheduler_stats.h"
#include "paged_kv/batch_scheduler_step_ring.h"
#include "paged_kv/batch_scheduler_transfers.h"
#include "paged_kv/batch_scheduler_waiting_queue.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Everything a scheduler is made of. The parts know nothing of each other;
// what joins them is in files named for what they do: lifecycle (how samples
// change their phase), step_builder with preemption, admission and
// prefix_wait (how a step is made), completion, state_check.
struct SchedulerState {
  SchedulerState(KvCacheManager* cache, const Clock* clock,
                 const BatchSchedulerOptions& options);

  KvCacheManager* const cache;  // borrowed
  const Clock* const clock;     // borrowed
  const BatchSchedulerOptions options;
  // Shortest run of tokens that the cache shares (CacheEvent).
  const uint32_t chunk_tokens;
  const bool has_windows;  // of any layer group

  RequestTable requests;
  WaitingQueue waiting;
  RunningSet running;
  StepRing steps;
  RingQueue<uint32_t> finished;  // slots of requests to be taken

  BatchSchedulerStats stats;  // the counters; Stats() adds what is now
  uint64_t last_number = 0;   // of submission
  absl::Time last_now = absl::InfinitePast();

  // The newest step in flight when blocks were last given back: the cache
  // keeps them in quarantine until it retires. 0: no step was in flight.
  StepId last_release;

  // ---- Where decodes run on a device ----

  const bool on_device;
  TransferLedger transfers;
  bool transfers_ended = false;  // since arrivals were last looked at
  // Somebody left the device or was failed since the step was begun.
  bool device_changed = false;
  // Downloads for room: whether one of those in flight together has succeeded,
  // and how many times in a row none has.
  bool round_moved = false;
  uint32_t failed_rounds = 0;

  // Whether `refused`, who found no room on the device, can have another answer
  // now. It can also with more pages than there were then.
  bool device_open = true;
  SampleRef refused;
  uint64_t pages_when_closed = 0;

  // ---- Admission ----

  // Whether looking for admissions can have another outcome than last time.
  bool admission_open = true;
  uint64_t blocks_when_closed = 0;  // AvailableBlocks() then

  // The clock's time, never going back.
  absl::Time Now();

  // Blocks that could be taken now, over all groups.
  uint64_t AvailableBlocks() const;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_STATE_H_
