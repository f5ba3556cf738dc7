// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_FIT_H_
#define PAGED_KV_BATCH_SCHEDULER_FIT_H_

#include <cstdint>

#include "absl/status/status.h"
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

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_FIT_H_
