// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_CACHE_STATS_H_
#define PAGED_KV_CACHE_STATS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "paged_kv/types.h"

namespace paged_kv {

// Every slot of a pool is in exactly one of these states, so that they always
// add up to the capacity. See docs/glossary.md.
struct SlotCounts {
  uint64_t live = 0;         // holds the K/V of a sequence's token
  uint64_t tail = 0;         // unused, in a block that is partly used
  uint64_t lookahead = 0;    // for draft tokens not yet accepted
  uint64_t reserved = 0;     // in blocks held for tokens to come
  uint64_t cached = 0;       // in evictable blocks with shareable K/V
  uint64_t duplicate = 0;    // second copies of content that is live elsewhere
  uint64_t quarantined = 0;  // freed, but a step in flight may still use it
  uint64_t free = 0;

  uint64_t Total() const {
    return live + tail + lookahead + reserved + cached + duplicate +
           quarantined + free;
  }
  // Slots of blocks held by sequences.
  uint64_t Allocated() const {
    return live + tail + lookahead + reserved + duplicate;
  }
};

struct PoolStats {
  BlockCount capacity;
  BlockCount held;  // by sequences and pins
  BlockCount cached;
  BlockCount quarantined;
  BlockCount free;
  // The most that were not free at once, since Create(). Memory of further
  // blocks was never touched.
  BlockCount peak_used;
  SlotCounts slots;
};

// Pages of a pool on the device. Every page is in exactly one of these states.
struct DevicePoolStats {
  BlockCount capacity;
  BlockCount free;
  BlockCount seated;       // of sequences on the device
  BlockCount moving;       // nobody's, but in a transfer
  BlockCount quarantined;  // nobody's, but a step in flight may read them
  BlockCount clean;        // nobody's, kept until their place is needed
  BlockCount dirty;        // nobody's, to be written back before that
};

// A consistent snapshot. Counters count from Create() and never decrease.
struct CacheStats {
  absl::InlinedVector<PoolStats, 4> pools;
  absl::InlinedVector<DevicePoolStats, 4> device_pools;  // or none

  uint32_t sequences = 0;  // living
  uint32_t pins = 0;
  uint32_t steps_in_flight = 0;

  uint64_t steps_committed = 0;
  uint64_t steps_retired = 0;
  uint64_t sequences_admitted = 0;
  uint64_t prompt_tokens = 0;  // of admitted sequences
  uint64_t hit_tokens = 0;     // of these, found in the cache
  uint64_t blocks_taken = 0;
  uint64_t blocks_evicted = 0;  // of these, by dropping cached content
  uint64_t blocks_copied = 0;   // copy-on-write
  // Full chunks that were not made shareable for lack of index room.
  uint64_t unshared_chunks = 0;
  uint64_t uploads_started = 0;  // pages, host to device
  uint64_t downloads_started = 0;
  uint64_t transfers_failed = 0;
  uint64_t device_evictions = 0;  // clean pages whose place was needed
  uint64_t events_dropped = 0;    // overwritten before they were drained
};

}  // namespace paged_kv

#endif  // PAGED_KV_CACHE_STATS_H_
