// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STATS_H_
#define PAGED_KV_BATCH_SCHEDULER_STATS_H_

#include <cstdint>

namespace paged_kv {

// A consistent snapshot. Counters count from Create() and never decrease.
struct BatchSchedulerStats {
  // Now.
  uint32_t waiting = 0;  // sequences in the queue
  uint32_t running = 0;  // sequences that hold blocks
  uint32_t untaken = 0;  // finished requests that TakeFinished() has not given
  uint32_t in_flight = 0;    // steps
  uint32_t on_device = 0;    // of those running, there or on their way there
  uint32_t swapped_out = 0;  // of those running, kept in host memory until
                             //   there is room on the device
  uint32_t transfers = 0;    // started and not reported finished

  uint64_t submitted = 0;  // accepted requests
  uint64_t finished = 0;   // of these, ended for any reason
  uint64_t cancelled = 0;  // of these, by Cancel()
  uint64_t failed = 0;     // of these, refused by the cache for good

  uint64_t steps = 0;
  uint64_t abandoned_steps = 0;    // of these, by AbandonStepsInFlight()
  uint64_t computed_tokens = 0;    // scheduled, recomputed ones included and
                                   //   drafts not
  uint64_t recomputed_tokens = 0;  // of these, a second time
  uint64_t output_tokens = 0;      // handed over by Complete()
  uint64_t drafted_tokens = 0;     // checked by decodes that completed
  uint64_t accepted_tokens = 0;    // of these, right

  uint64_t preemptions = 0;      // swaps included
  uint32_t max_preemptions = 0;  // of one sequence
  uint64_t stalls = 0;           // times a running sequence was left out of a
                                 //   step for lack of blocks
  uint64_t prefix_waits = 0;     // admissions that waited for a prefix
  uint64_t prefix_wait_steps = 0;
  uint64_t failed_forks = 0;  // samples that had to recompute the prompt

  // Where decodes run on a device.
  uint64_t swap_ins = 0;   // arrivals of sequences there, first ones included
  uint64_t swap_outs = 0;  // of the preemptions, by swap
  uint64_t pages_in = 0;   // moved to the device
  uint64_t pages_out = 0;  // moved to host memory, write-backs included
  uint64_t failed_transfers = 0;
  uint64_t device_losses = 0;  // LoseDevice()
};

}  // namespace paged_kv

#endif  // PAGED_KV_BATCH_SCHEDULER_STATS_H_
