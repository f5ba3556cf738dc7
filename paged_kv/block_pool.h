// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BLOCK_POOL_H_
#define PAGED_KV_BLOCK_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/block_list.h"
#include "paged_kv/cache_stats.h"
#include "paged_kv/eviction_policy.h"
#include "paged_kv/lazy_array.h"
#include "paged_kv/prefetch.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// The blocks of one page size: references, states and the lists behind them,
// and what each slot is used for. Knows nothing of sequences or content.
//
// Life of a block: free -> held (TakeFree) -> [quarantined ->] cached or free;
// cached -> held again by a hit (AddRef) or an eviction (TakeCached).
//
// Thread safety: thread-compatible.
// Invariants: a block is held if and only if it has references (a caller that
// drops the last one moves it on at once); cached and quarantined blocks are
// on exactly one list; Stats().slots equals a recount. Every call is O(1).
class BlockPool {
 public:
  // `quarantines`: lists of quarantined blocks, one per step in flight and one
  // for blocks that wait for a transfer. `number`: of the pool, for its users.
  absl::Status Create(BlockCount blocks, uint32_t block_tokens,
                      EvictionPolicyFactory make_policy, uint32_t quarantines,
                      uint32_t number = 0);

  uint32_t number() const { return number_; }
  uint32_t block_tokens() const { return block_tokens_; }
  uint32_t capacity() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t free() const { return free_; }
  uint32_t cached() const { return cached_; }
  uint32_t quarantined() const { return quarantined_; }
  uint32_t quarantined(uint32_t list) const { return quarantine_[list].size(); }
  uint32_t held() const { return capacity() - free_ - cached_ - quarantined_; }
  uint32_t available() const { return free_ + cached_ - held_back_; }
  // Cached blocks that must not be taken now, though they are in the order of
  // eviction; which ones is for the caller to know.
  uint32_t held_back() const { return held_back_; }
  void HoldBack() { ++held_back_; }
  void EndHoldBack() { --held_back_; }
  PoolStats Stats() const;

  const BlockMeta& meta(BlockId id) const { return blocks_[id.value()]; }
  BlockState state(BlockId id) const {
    return static_cast<BlockState>(meta(id).state);
  }
  bool shareable(BlockId id) const { return meta(id).node != 0; }
  // May be written: one owner, and not content that others may find.
  bool writable(BlockId id) const {
    return meta(id).refs == 1 && !shareable(id);
  }

  // ---- Order of allocation, without taking anything ----

  // Free blocks in the order in which TakeFree() gives them; kNoBlock at the
  // end.
  BlockId FirstFree() const;
  BlockId NextFree(BlockId id) const;
  const EvictionPolicy& policy() const { return *policy_; }

  // ---- Life ----

  BlockId TakeFree();           // REQUIRES: free() > 0
  void TakeCached(BlockId id);  // REQUIRES: cached, content detached
  // One more holder. A cached or quarantined block is held again.
  void AddRef(BlockId id);
  // True if that was the last one; the caller then calls one of the next
  // three, all of which require a held block without references.
  bool DropRef(BlockId id);
  void Quarantine(BlockId id, uint32_t list);
  void ToCached(BlockId id);  // REQUIRES: shareable
  void ToFree(BlockId id);    // REQUIRES: not shareable
  // Ends the quarantine of the longest-waiting block of `list`, which is then
  // held without references. kNoBlock if there is none.
  BlockId PopQuarantine(uint32_t list);
  // The same for one block. REQUIRES: quarantined.
  void EndQuarantine(BlockId id);
  // REQUIRES: quarantined.
  uint32_t QuarantineList(BlockId id) const { return meta(id).ahead; }
  // A cached block is then held without references.
  void Uncache(BlockId id);

  // REQUIRES of both: not on an eviction list.
  void RaisePriority(BlockId id, uint32_t priority);
  void MarkHit(BlockId id) { Mutable(id).was_hit = 1; }

  // Slots with tokens, and behind them slots for drafts. REQUIRES: held.
  void SetFill(BlockId id, uint32_t filled, uint32_t ahead);

  // ---- Content (see PrefixIndex) ----

  // `id` holds the content of `node`, as its first copy or as one behind
  // `first`. REQUIRES: held, full, not shareable.
  void AttachFirst(BlockId id, uint32_t node);
  void AttachBehind(BlockId id, BlockId first);
  // Ends that; returns the copy that is first now, kNoBlock if none is left.
  // *was_first: whether `id` was.
  BlockId Detach(BlockId id, bool* was_first);
  bool IsFirstCopy(BlockId id) const { return meta(id).copy_prev == 0; }
  bool HasOtherCopies(BlockId id) const {
    return meta(id).copy_prev != 0 || meta(id).copy_next != 0;
  }
  // Another copy of the content. REQUIRES: HasOtherCopies().
  BlockId OtherCopy(BlockId id) const;

  // Planning counts references ahead and takes them back before it returns.
  void CountRefAhead(BlockId id, int change) {
    blocks_[id.value()].refs += static_cast<uint32_t>(change);
  }

  void Prefetch(BlockId id) const {
    const BlockMeta* block = &blocks_.data()[id.value()];
    PrefetchLine(block);
    // May be in the next cache line.
    PrefetchLine(reinterpret_cast<const char*>(block + 1) - 1);
  }

  // First broken invariant; leaves references to the caller. O(blocks).
  absl::Status CheckInvariants() const;

 private:
  BlockMeta& Mutable(BlockId id) { return blocks_[id.value()]; }
  static void SetState(BlockMeta* meta, BlockState state);
  void SetCopyPrev(BlockMeta* meta, uint32_t copy_prev);

  // Slots of held blocks by use. Those of other blocks, and the unused ones of
  // held blocks, follow from the numbers of blocks, so that most changes of
  // state count nothing.
  struct HeldSlots {
    uint64_t live = 0;
    uint64_t duplicate = 0;
    uint64_t lookahead = 0;
    uint64_t empty_blocks = 0;  // without tokens and drafts
  };
  enum HeldChange : int64_t { kAdd = 1, kTakeAway = -1 };
  // A held block's part in held_slots_ comes or goes.
  void CountHeld(const BlockMeta& meta, HeldChange change);
  SlotCounts Slots() const;
  // Adds a block's slots by its own state, for a check of Slots().
  void Recount(const BlockMeta& meta, SlotCounts* slots) const;

  uint32_t number_ = 0;
  uint32_t block_tokens_ = 0;
  LazyArray<BlockMeta> blocks_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<BlockList> quarantine_;
  BlockId free_list_ = kNoBlock;  // freed blocks, last in first out
  uint32_t never_used_ = 0;       // blocks from here on are free and untouched
  uint32_t free_ = 0;
  uint32_t cached_ = 0;
  uint32_t quarantined_ = 0;
  uint32_t held_back_ = 0;
  HeldSlots held_slots_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BLOCK_POOL_H_
