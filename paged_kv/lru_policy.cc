// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "paged_kv/check.h"
#include "paged_kv/eviction_policy.h"

namespace paged_kv {
namespace {

// kClasses lists in the order in which they are emptied. The caller knows which
// list a block is on.
template <uint32_t kClasses>
class ListPerClass {
 public:
  explicit ListPerClass(BlockLinks links) : links_(links) {}

  void Insert(BlockId block, uint32_t list) {
    lists_[list].PushBack(links_, block);
    nonempty_ |= 1u << list;
  }
  void Remove(BlockId block, uint32_t list) {
    lists_[list].Remove(links_, block);
    if (lists_[list].empty()) nonempty_ &= ~(1u << list);
  }
  BlockId First() const {
    return nonempty_ == 0 ? kNoBlock : lists_[Lowest(nonempty_)].front();
  }
  BlockId Next(BlockId block, uint32_t list) const {
    const BlockId next = BlockList::Next(links_, block);
    if (next != kNoBlock) return next;
    const uint32_t above = nonempty_ & ~((2u << list) - 1);
    return above == 0 ? kNoBlock : lists_[Lowest(above)].front();
  }

 private:
  static_assert(kClasses <= 31);
  static uint32_t Lowest(uint32_t bits) {
    return static_cast<uint32_t>(__builtin_ctz(bits));
  }

  BlockLinks links_;
  std::array<BlockList, kClasses> lists_;
  uint32_t nonempty_ = 0;  // bit i: lists_[i] has blocks
};

class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(BlockLinks links) : links_(links), lists_(links) {}

  void Insert(BlockId block, uint32_t priority, bool) override {
    PAGED_KV_DCHECK(priority < kPriorities);
    lists_.Insert(block, priority);
  }
  void Remove(BlockId block) override {
    lists_.Remove(block, links_.priority(block));
  }
  BlockId First() const override { return lists_.First(); }
  BlockId Next(BlockId block) const override {
    return lists_.Next(block, links_.priority(block));
  }

 private:
  BlockLinks links_;
  ListPerClass<kPriorities> lists_;
};

class SegmentedLruPolicy final : public EvictionPolicy {
 public:
  explicit SegmentedLruPolicy(BlockLinks links)
      : links_(links), lists_(links) {}

  void Insert(BlockId block, uint32_t priority, bool was_hit) override {
    PAGED_KV_DCHECK(priority < kPriorities);
    lists_.Insert(block, Segment(priority, was_hit));
  }
  void Remove(BlockId block) override {
    lists_.Remove(block, SegmentOf(block));
  }
  BlockId First() const override { return lists_.First(); }
  BlockId Next(BlockId block) const override {
    return lists_.Next(block, SegmentOf(block));
  }

 private:
  static uint32_t Segment(uint32_t priority, bool was_hit) {
    return 2 * priority + (was_hit ? 1 : 0);
  }
  uint32_t SegmentOf(BlockId block) const {
    return Segment(links_.priority(block), links_.was_hit(block));
  }

  BlockLinks links_;
  ListPerClass<2 * kPriorities> lists_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLruPolicy(BlockLinks links) {
  return std::make_unique<LruPolicy>(links);
}

std::unique_ptr<EvictionPolicy> MakeSegmentedLruPolicy(BlockLinks links) {
  return std::make_unique<SegmentedLruPolicy>(links);
}

}  // namespace paged_kv
