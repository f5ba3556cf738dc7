// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_OPTIONS_H_
#define PAGED_KV_BATCH_SCHEDULER_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv {

// Everything is bounded here; a scheduler never grows after Create().
struct BatchSchedulerOptions {
  // ---- Size ----

  // Requests known at once: waiting, running, or finished and not yet taken.
  uint32_t max_requests = 1024;
  // Sequences that run at once, and so sequences per step. At most the cache's
  // max_sequences and max_batch_tokens, so that every running sequence can
  // decode in every step.
  uint32_t max_batch_sequences = 64;
  // Tokens computed per step over all sequences.
  uint32_t max_batch_tokens = 2048;
  // Tokens computed per step for one sequence; 0: max_batch_tokens.
  uint32_t max_chunk_tokens = 0;
  // Steps scheduled and not yet completed: 1 for synchronous engines, 2 to
  // schedule a decode before the token that it reads is known. At most the
  // cache's max_steps_in_flight.
  uint32_t max_steps_in_flight = 1;
  // Drafts that one decode checks (BatchScheduler::Propose); 0: none. Less than
  // max_batch_tokens.
  uint32_t max_draft_tokens = 0;

  // ---- Behaviour ----

  // Where decodes run. kDevice: prompts are computed in host memory, and a
  // sequence moves to the device before its first decode; one that cannot stay
  // there is swapped out. Needs a cache with a device tier.
  Tier decode_tier = Tier::kHost;
  // How many bytes a transfer moves in the time in which one token is computed
  // again. A sequence that leaves the device recomputes instead of being
  // swapped out if its tokens times this are less than the bytes that it would
  // move there and back. 0: never. Default: 12 GB/s over PCIe beside a prefill
  // of about 12,000 tokens/s.
  uint64_t recompute_token_bytes = uint64_t{1} << 20;
  // A request fails after more failed attempts in a row than this to move it to
  // the device or to make room for it there.
  uint32_t max_transfer_failures = 8;

  // A request is admitted only while, besides the blocks of all prompts that
  // run, every running sequence could still grow by this many tokens (or to
  // its maximum) on top of the cache's watermark. It doubles for a request
  // each time that it is preempted, so that it cannot be taken in and thrown
  // out over and over. Nothing is held: growth may use these blocks.
  uint32_t growth_reserve_tokens = 64;

  // How much earlier a request seems to have arrived for each level of
  // priority. Finite, so that a stream of urgent requests cannot starve the
  // others. absl::InfiniteDuration(): strict priorities, which can.
  absl::Duration priority_head_start = absl::Seconds(60);

  // A request waits for a prefix that another one is computing if that saves
  // at least this many tokens ...
  uint32_t prefix_wait_min_tokens = 64;
  // ... and is expected within this many steps, all its waiting included.
  // 0: never wait.
  uint32_t max_prefix_wait_steps = 32;
};

// InvalidArgument, naming the field and its value, if a scheduler over a cache
// with `cache_options` could not be made of `options`.
absl::Status Validate(const BatchSchedulerOptions& options,
                      const KvCacheOptions& cache_options);

}  // namespace paged_kv

#endif  // PAGED_KV_BATCH_SCHEDULER_OPTIONS_H_
