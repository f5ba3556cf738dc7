// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Metadata of a block and intrusive lists of blocks over it.

#ifndef PAGED_KV_BLOCK_LIST_H_
#define PAGED_KV_BLOCK_LIST_H_

#include <cstdint>

#include "paged_kv/types.h"

namespace paged_kv {

enum class BlockState : uint8_t { kFree, kHeld, kCached, kQuarantined };

// 28 bytes per block. All-zero memory is a free block that was never used.
struct BlockMeta {
  uint32_t refs;  // from block tables (pins included)
  uint32_t prev;  // eviction or quarantine list
  uint32_t next;
  uint32_t node;         // prefix-index node + 1; 0: not shareable
  uint32_t copy_prev;    // other copies of the node's content, id + 1; 0: none,
  uint32_t copy_next;    //   so the first copy has copy_prev 0. A free block's
                         //   copy_next is the free list's link.
  uint32_t filled : 13;  // slots with K/V of a token
  uint32_t ahead : 13;   // slots behind them for drafts
  uint32_t state : 2;    // BlockState
  uint32_t priority : 3;  // highest of the sequences that freed it
  uint32_t was_hit : 1;   // found by a look-up since it was filled
};
static_assert(sizeof(BlockMeta) == 28, "the budget of docs/design.md");

// The list links of a pool's blocks, for eviction policies. Borrowed.
class BlockLinks {
 public:
  explicit BlockLinks(BlockMeta* blocks) : blocks_(blocks) {}

  uint32_t& prev(BlockId id) const { return blocks_[id.value()].prev; }
  uint32_t& next(BlockId id) const { return blocks_[id.value()].next; }
  // As given to EvictionPolicy::Insert; they do not change until Remove.
  uint32_t priority(BlockId id) const { return blocks_[id.value()].priority; }
  bool was_hit(BlockId id) const { return blocks_[id.value()].was_hit != 0; }

 private:
  BlockMeta* blocks_;
};

// A doubly linked list through BlockLinks. A block is on at most one list.
// Every call is O(1).
class BlockList {
 public:
  BlockId front() const { return front_; }
  BlockId back() const { return back_; }
  bool empty() const { return front_ == kNoBlock; }
  uint32_t size() const { return size_; }

  static BlockId Next(BlockLinks links, BlockId id) {
    return BlockId(links.next(id));
  }

  void PushBack(BlockLinks links, BlockId id) {
    links.prev(id) = back_.value();
    links.next(id) = kNoBlock.value();
    if (empty()) {
      front_ = id;
    } else {
      links.next(back_) = id.value();
    }
    back_ = id;
    ++size_;
  }

  void Remove(BlockLinks links, BlockId id) {
    const BlockId prev(links.prev(id));
    const BlockId next(links.next(id));
    if (prev == kNoBlock) {
      front_ = next;
    } else {
      links.next(prev) = next.value();
    }
    if (next == kNoBlock) {
      back_ = prev;
    } else {
      links.prev(next) = prev.value();
    }
    --size_;
  }

 private:
  BlockId front_ = kNoBlock;
  BlockId back_ = kNoBlock;
  uint32_t size_ = 0;
};

}  // namespace paged_kv

#endif  // PAGED_KV_BLOCK_LIST_H_
