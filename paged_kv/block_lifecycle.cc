// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/block_lifecycle.h"

#include "paged_kv/check.h"

namespace paged_kv::internal {
namespace {

// What an eviction touches (the block, its node, the node's bucket and parent)
// is scattered over memory and found by following links. Each eviction
// therefore loads one stage of the next few ahead, so that its own lines have
// arrived and its cost does not grow with the pool.
void PrefetchVictims(const CacheState& state, const BlockPool& pool,
                     BlockId victim) {
  const EvictionPolicy& policy = pool.policy();
  const PrefixIndex& index = *state.index;
  BlockId next[4];
  for (BlockId& id : next) {
    id = victim = policy.Next(victim);
    if (id == kNoBlock) return;
  }
  index.PrefetchChain(pool.meta(next[0]).node);
  index.PrefetchLinks(pool.meta(next[1]).node);
  index.PrefetchNode(pool.meta(next[2]).node);
  pool.Prefetch(next[3]);
}

// The block gives its content up.
void DropDevicePage(CacheState* state, const BlockPool& pool, BlockId block) {
  if (DeviceTier* tier = state->TierOf(pool)) tier->Drop(block);
}

void FreeBlock(CacheState* state, BlockPool* pool, BlockId block) {
  DropDevicePage(state, *pool, block);
  pool->ToFree(block);
}

}  // namespace

BlockId TakeBlock(CacheState* state, BlockPool* pool) {
  ++state->blocks_taken;
  if (pool->free() > 0) return pool->TakeFree();
  BlockId victim = pool->policy().First();
  while (IsHeldBack(*state, *pool, victim)) {
    victim = pool->policy().Next(victim);
  }
  PAGED_KV_CHECK(victim != kNoBlock);
  PrefetchVictims(*state, *pool, victim);
  state->index->Detach(pool, victim);
  DropDevicePage(state, *pool, victim);
  pool->TakeCached(victim);
  ++state->blocks_evicted;
  return victim;
}

void ReleaseBlock(CacheState* state, BlockPool* pool, BlockId block,
                  uint32_t priority) {
  pool->RaisePriority(block, priority);
  if (!pool->DropRef(block)) return;
  const uint32_t list = state->CurrentQuarantine();
  if (list == DeviceTier::kNoList) {
    SettleBlock(state, pool, block);
  } else {
    pool->Quarantine(block, list);
  }
}

void SettleBlock(CacheState* state, BlockPool* pool, BlockId block) {
  const DeviceTier* tier = state->TierOf(*pool);
  if (tier != nullptr && tier->InTransfer(block)) {
    pool->Quarantine(block, state->TransferQuarantine());
    return;
  }
  if (!pool->shareable(block)) {
    FreeBlock(state, pool, block);
    return;
  }
  if (!pool->HasOtherCopies(block)) {
    pool->ToCached(block);
    return;
  }
  // The content was used just now. If the other copy waits for eviction, this
  // one takes its place at the young end; if it is in use, it is enough.
  const BlockId other = pool->OtherCopy(block);
  const uint32_t priority = pool->meta(block).priority;
  if (pool->state(other) == BlockState::kCached &&
      !IsHeldBack(*state, *pool, other)) {
    pool->RaisePriority(block, pool->meta(other).priority);
    pool->Uncache(other);
    state->index->Detach(pool, other);
    FreeBlock(state, pool, other);
    SettleBlock(state, pool, block);
    return;
  }
  if (pool->state(other) != BlockState::kCached) {
    pool->RaisePriority(other, priority);
  }
  state->index->Detach(pool, block);
  FreeBlock(state, pool, block);
}

void DropCachedContent(CacheState* state) {
  state->index->set_quiet(true);
  for (const auto& pool : state->pools) {
    while (pool->cached() > 0) {
      const BlockId block = pool->policy().First();
      state->index->Detach(pool.get(), block);
      pool->Uncache(block);
      FreeBlock(state, pool.get(), block);
    }
  }
  state->index->set_quiet(false);
  EventRing& events = state->index->events();
  if (!events.enabled()) return;
  CacheEvent cleared;
  cleared.kind = CacheEvent::Kind::kCleared;
  events.Push(cleared);
}

}  // namespace paged_kv::internal
