// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The order in which cached blocks give way to new ones.

#ifndef PAGED_KV_EVICTION_POLICY_H_
#define PAGED_KV_EVICTION_POLICY_H_

#include <cstdint>
#include <memory>

#include "paged_kv/block_list.h"
#include "paged_kv/types.h"

namespace paged_kv {

// Priorities of cached content: 0 goes first.
inline constexpr uint32_t kPriorities = 8;
inline constexpr uint32_t kDefaultPriority = 3;

// Orders the evictable blocks of one pool: cached content that no sequence
// holds. Every call must be O(1) and allocate nothing; the links of a block
// (BlockLinks) are the policy's while the block is inserted.
//
// The manager inserts the blocks of a freed sequence last block first, and a
// prefix is always inserted after, and with at least the priority of, what
// follows it. A policy that keeps this order never cuts a chain in its middle.
//
// Thread safety: none; called under the manager's synchronization.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // `block` became evictable. `was_hit`: it has been found by a look-up since
  // it was filled.
  virtual void Insert(BlockId block, uint32_t priority, bool was_hit) = 0;
  // An inserted block was hit or evicted.
  virtual void Remove(BlockId block) = 0;
  // Inserted blocks in the order of eviction; kNoBlock at the end.
  virtual BlockId First() const = 0;
  virtual BlockId Next(BlockId block) const = 0;
};

// Makes the policy of one pool; `links` outlives it.
using EvictionPolicyFactory =
    std::unique_ptr<EvictionPolicy> (*)(BlockLinks links);

// Least recently used first within the lowest priority. The default.
std::unique_ptr<EvictionPolicy> MakeLruPolicy(BlockLinks links);

// Segmented LRU (Karedla, Love, Wherry 1994) with two segments: blocks that
// were never hit go before blocks that were, within the lowest priority.
std::unique_ptr<EvictionPolicy> MakeSegmentedLruPolicy(BlockLinks links);

}  // namespace paged_kv

#endif  // PAGED_KV_EVICTION_POLICY_H_
