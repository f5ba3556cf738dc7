// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How blocks move between their pool, the prefix index and the steps in flight.

#ifndef PAGED_KV_BLOCK_LIFECYCLE_H_
#define PAGED_KV_BLOCK_LIFECYCLE_H_

#include <cstdint>

#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// Whether the block, if it is cached, must not be evicted now: its page in host
// memory is being written back from the device (BlockPool::held_back).
inline bool IsHeldBack(const CacheState& state, const BlockPool& pool,
                       BlockId block) {
  const DeviceTier* tier = state.TierOf(pool);
  return tier != nullptr && block != kNoBlock && tier->InTransfer(block);
}

// Takes a block for one holder, evicting cached content if none is free. O(1).
// REQUIRES: pool->available() > 0.
BlockId TakeBlock(CacheState* state, BlockPool* pool);

// Drops a reference. The last one sends the block to quarantine while any step
// is in flight, else to SettleBlock. `priority`: of the sequence that held it.
void ReleaseBlock(CacheState* state, BlockPool* pool, BlockId block,
                  uint32_t priority);

// Sends a held block without references to the cache if it holds shareable
// content, else to the free list. Of several copies without holders, only the
// one settled last stays. A block with a transfer in flight waits for its end
// in CacheState::TransferQuarantine().
void SettleBlock(CacheState* state, BlockPool* pool, BlockId block);

// Drops everything cached, with one event.
void DropCachedContent(CacheState* state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BLOCK_LIFECYCLE_H_
