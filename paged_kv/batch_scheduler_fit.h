// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_FIT_H_
#define PAGED_KV_BATCH_SCHEDULER_FIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Most blocks of a layer group that a sequence of up to `tokens` tokens holds
// at once, if at most `tokens_in_flight` of them are not yet written. Equal to
// what the cache counts where nothing is released by a window; there, at most
// one block above it.
uint64_t MaxBlocksHeld(const LayerGroup& group, uint64_t tokens,
                       uint64_t tokens_in_flight);

// OutOfRange, with the numbers, if such a sequence could not be held by the
// cache alone.
absl::Status CheckFitsEmptyCache(const KvCacheManager& cache, uint64_t tokens,
                                 uint64_t tokens_in_flight);

// The same for the device, of whose pages the sequence has one per block.
// `copies`: it shares its last block with others, and copies it to write.
absl::Status CheckFitsEmptyDevice(const KvCacheManager& cache, uint64_t tokens,
                                  uint64_t tokens_in_flight, bool copies);

// Groups of these shapes share one pool (KvCacheOptions::groups).
bool ShareOnePool(const BlockShape& a, const BlockShape& b);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_FIT_H_
