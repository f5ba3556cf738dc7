// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/block_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {
namespace {

constexpr uint32_t kBlockTokensBits = 13;
static_assert(kMaxBlockTokens < (1u << kBlockTokensBits));

// Links are stored as id + 1 so that zeroed memory means "none".
uint32_t ToLink(BlockId id) { return id.value() + 1; }
BlockId FromLink(uint32_t link) { return BlockId(link - 1); }
static_assert(kNoBlock.value() + 1 == 0);

}  // namespace

absl::Status BlockPool::Create(BlockCount blocks, uint32_t block_tokens,
                               EvictionPolicyFactory make_policy,
                               uint32_t quarantines, uint32_t number) {
  PAGED_KV_CHECK(block_tokens <= kMaxBlockTokens);
  absl::Status status = blocks_.Create(blocks.value());
  if (!status.ok()) return status;
  number_ = number;
  block_tokens_ = block_tokens;
  policy_ = make_policy(BlockLinks(blocks_.data()));
  quarantine_.resize(quarantines);
  free_ = blocks.value();
  return absl::OkStatus();
}

PoolStats BlockPool::Stats() const {
  PoolStats stats;
  stats.capacity = BlockCount(capacity());
  stats.held = BlockCount(held());
  stats.cached = BlockCount(cached_);
  stats.quarantined = BlockCount(quarantined_);
  stats.free = BlockCount(free_);
  stats.peak_used = BlockCount(never_used_);  // freed ones are taken first
  stats.slots = Slots();
  return stats;
}

SlotCounts BlockPool::Slots() const {
  SlotCounts slots;
  slots.free = uint64_t{free_} * block_tokens_;
  slots.cached = uint64_t{cached_} * block_tokens_;
  slots.quarantined = uint64_t{quarantined_} * block_tokens_;
  slots.live = held_slots_.live;
  slots.duplicate = held_slots_.duplicate;
  slots.lookahead = held_slots_.lookahead;
  slots.reserved = held_slots_.empty_blocks * block_tokens_;
  slots.tail = uint64_t{held()} * block_tokens_ - slots.live - slots.duplicate -
               slots.lookahead - slots.reserved;
  return slots;
}

void BlockPool::CountHeld(const BlockMeta& meta, HeldChange change) {
  const auto sign = static_cast<uint64_t>(change);
  (meta.copy_prev != 0 ? held_slots_.duplicate : held_slots_.live) +=
      sign * meta.filled;
  held_slots_.lookahead += sign * meta.ahead;
  if (meta.filled + meta.ahead == 0) held_slots_.empty_blocks += sign;
}

void BlockPool::SetState(BlockMeta* meta, BlockState state) {
  meta->state = static_cast<uint32_t>(state) & 3u;
}

BlockId BlockPool::FirstFree() const {
  if (free_list_ != kNoBlock) return free_list_;
  return never_used_ < capacity() ? BlockId(never_used_) : kNoBlock;
}

BlockId BlockPool::NextFree(BlockId id) const {
  if (id.value() >= never_used_) {
    return id.value() + 1 < capacity() ? BlockId(id.value() + 1) : kNoBlock;
  }
  const BlockId next = FromLink(meta(id).copy_next);
  if (next != kNoBlock) return next;
  return never_used_ < capacity() ? BlockId(never_used_) : kNoBlock;
}

BlockId BlockPool::TakeFree() {
  const BlockId id = FirstFree();
  PAGED_KV_CHECK(id != kNoBlock);
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(meta.state == static_cast<uint32_t>(BlockState::kFree));
  if (id == free_list_) {
    free_list_ = FromLink(meta.copy_next);
    meta.copy_next = 0;
  } else {
    ++never_used_;
  }
  --free_;
  SetState(&meta, BlockState::kHeld);
  ++held_slots_.empty_blocks;
  meta.refs = 1;
  return id;
}

void BlockPool::Uncache(BlockId id) {
  PAGED_KV_DCHECK(state(id) == BlockState::kCached);
  policy_->Remove(id);
  --cached_;
  BlockMeta& meta = Mutable(id);
  SetState(&meta, BlockState::kHeld);
  CountHeld(meta, kAdd);
}

void BlockPool::TakeCached(BlockId id) {
  PAGED_KV_DCHECK(state(id) == BlockState::kCached && !shareable(id));
  policy_->Remove(id);
  --cached_;
  BlockMeta& meta = Mutable(id);
  SetState(&meta, BlockState::kHeld);
  meta.filled = 0;
  ++held_slots_.empty_blocks;
  meta.refs = 1;
  meta.priority = 0;
  meta.was_hit = 0;
}

void BlockPool::AddRef(BlockId id) {
  BlockMeta& meta = Mutable(id);
  switch (static_cast<BlockState>(meta.state)) {
    case BlockState::kHeld:
      break;
    case BlockState::kCached:
      Uncache(id);
      break;
    case BlockState::kQuarantined:
      EndQuarantine(id);
      break;
    case BlockState::kFree:
      PAGED_KV_CHECK(false);
  }
  ++meta.refs;
}

bool BlockPool::DropRef(BlockId id) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_CHECK(meta.refs > 0);
  return --meta.refs == 0;
}

void BlockPool::Quarantine(BlockId id, uint32_t list) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kHeld && meta.refs == 0);
  CountHeld(meta, kTakeAway);
  SetState(&meta, BlockState::kQuarantined);
  // A quarantined block has no drafts: the field names its list instead.
  meta.ahead = list & ((1u << kBlockTokensBits) - 1);
  quarantine_[list].PushBack(BlockLinks(blocks_.data()), id);
  ++quarantined_;
}

BlockId BlockPool::PopQuarantine(uint32_t list) {
  BlockList& quarantine = quarantine_[list];
  if (quarantine.empty()) return kNoBlock;
  const BlockId id = quarantine.front();
  EndQuarantine(id);
  return id;
}

void BlockPool::EndQuarantine(BlockId id) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kQuarantined);
  quarantine_[meta.ahead].Remove(BlockLinks(blocks_.data()), id);
  --quarantined_;
  meta.ahead = 0;
  SetState(&meta, BlockState::kHeld);
  CountHeld(meta, kAdd);
}

void BlockPool::ToCached(BlockId id) {
  BlockMeta& block = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kHeld && block.refs == 0);
  PAGED_KV_DCHECK(shareable(id));
  CountHeld(block, kTakeAway);
  SetState(&block, BlockState::kCached);
  ++cached_;
  policy_->Insert(id, block.priority, block.was_hit != 0);
}

void BlockPool::ToFree(BlockId id) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kHeld && meta.refs == 0);
  PAGED_KV_DCHECK(!shareable(id));
  CountHeld(meta, kTakeAway);
  SetState(&meta, BlockState::kFree);
  meta.filled = 0;
  meta.ahead = 0;
  meta.priority = 0;
  meta.was_hit = 0;
  meta.copy_next = ToLink(free_list_);
  free_list_ = id;
  ++free_;
}

void BlockPool::RaisePriority(BlockId id, uint32_t priority) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) != BlockState::kCached);
  meta.priority = std::max<uint32_t>(meta.priority, priority) & 7u;
}

void BlockPool::SetFill(BlockId id, uint32_t filled, uint32_t ahead) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kHeld && !shareable(id));
  PAGED_KV_DCHECK(filled + ahead <= block_tokens_);
  constexpr uint32_t kMask = (1u << kBlockTokensBits) - 1;
  CountHeld(meta, kTakeAway);
  meta.filled = filled & kMask;
  meta.ahead = ahead & kMask;
  CountHeld(meta, kAdd);
}

void BlockPool::AttachFirst(BlockId id, uint32_t node) {
  BlockMeta& meta = Mutable(id);
  PAGED_KV_DCHECK(state(id) == BlockState::kHeld && meta.node == 0);
  PAGED_KV_DCHECK(meta.filled == block_tokens_);
  meta.node = node;
}

void BlockPool::AttachBehind(BlockId id, BlockId first) {
  BlockMeta& block = Mutable(id);
  BlockMeta& first_block = Mutable(first);
  PAGED_KV_DCHECK(id != first && first_block.copy_prev == 0);
  AttachFirst(id, first_block.node);
  CountHeld(block, kTakeAway);
  block.copy_prev = ToLink(first);
  block.copy_next = first_block.copy_next;
  if (block.copy_next != 0) {
    Mutable(FromLink(block.copy_next)).copy_prev = ToLink(id);
  }
  first_block.copy_next = ToLink(id);
  CountHeld(block, kAdd);
}

BlockId BlockPool::Detach(BlockId id, bool* was_first) {
  BlockMeta& block = Mutable(id);
  PAGED_KV_DCHECK(block.node != 0);
  const BlockId prev = FromLink(block.copy_prev);
  const BlockId next = FromLink(block.copy_next);
  *was_first = prev == kNoBlock;
  if (next != kNoBlock) {
    SetCopyPrev(&Mutable(next), block.copy_prev);
  }
  if (prev != kNoBlock) Mutable(prev).copy_next = block.copy_next;
  block.node = 0;
  block.copy_next = 0;
  SetCopyPrev(&block, 0);
  return next;
}

void BlockPool::SetCopyPrev(BlockMeta* meta, uint32_t copy_prev) {
  const bool held = meta->state == static_cast<uint32_t>(BlockState::kHeld);
  if (held) CountHeld(*meta, kTakeAway);
  meta->copy_prev = copy_prev;
  if (held) CountHeld(*meta, kAdd);
}

BlockId BlockPool::OtherCopy(BlockId id) const {
  const BlockMeta& block = meta(id);
  PAGED_KV_DCHECK(HasOtherCopies(id));
  return FromLink(block.copy_next != 0 ? block.copy_next : block.copy_prev);
}

void BlockPool::Recount(const BlockMeta& meta, SlotCounts* slots) const {
  switch (static_cast<BlockState>(meta.state)) {
    case BlockState::kFree:
      slots->free += block_tokens_;
      return;
    case BlockState::kCached:
      slots->cached += block_tokens_;
      return;
    case BlockState::kQuarantined:
      slots->quarantined += block_tokens_;
      return;
    case BlockState::kHeld: {
      const uint32_t filled = meta.filled;
      const uint32_t ahead = meta.ahead;
      const uint32_t rest = block_tokens_ - filled - ahead;
      (meta.copy_prev != 0 ? slots->duplicate : slots->live) += filled;
      slots->lookahead += ahead;
      (filled + ahead > 0 ? slots->tail : slots->reserved) += rest;
      return;
    }
  }
}

absl::Status BlockPool::CheckInvariants() const {
  SlotCounts recount;
  uint32_t by_state[4] = {};
  for (uint32_t i = 0; i < capacity(); ++i) {
    const BlockMeta& block = blocks_[i];
    Recount(block, &recount);
    ++by_state[block.state];
    const bool held = state(BlockId(i)) == BlockState::kHeld;
    if (held != (block.refs > 0)) {
      return absl::InternalError(absl::StrCat("block ", i, " in state ",
                                              block.state + 0, " has ",
                                              block.refs, " references"));
    }
    if (state(BlockId(i)) == BlockState::kCached && block.node == 0) {
      return absl::InternalError(
          absl::StrCat("block ", i, " is cached without content"));
    }
    if (block.node != 0 && block.filled != block_tokens_) {
      return absl::InternalError(absl::StrCat("shareable block ", i, " has ",
                                              block.filled + 0, " of ",
                                              block_tokens_, " slots filled"));
    }
  }
  if (by_state[0] != free_ || by_state[2] != cached_ ||
      by_state[3] != quarantined_) {
    return absl::InternalError(
        absl::StrCat("pool counts free ", free_, ", cached ", cached_,
                     ", quarantined ", quarantined_, "; blocks say ",
                     by_state[0], ", ", by_state[2], ", ", by_state[3]));
  }
  uint32_t listed = 0;
  for (BlockId id = FirstFree(); id != kNoBlock; id = NextFree(id)) {
    if (state(id) != BlockState::kFree || ++listed > free_) {
      return absl::InternalError(absl::StrCat(
          "free list reaches block ", id.value(), " as entry ", listed));
    }
  }
  if (listed != free_) {
    return absl::InternalError(
        absl::StrCat("free list has ", listed, " of ", free_, " blocks"));
  }
  listed = 0;
  for (BlockId id = policy_->First(); id != kNoBlock; id = policy_->Next(id)) {
    if (state(id) != BlockState::kCached || ++listed > cached_) {
      return absl::InternalError(absl::StrCat(
          "eviction order reaches block ", id.value(), " as entry ", listed));
    }
  }
  if (listed != cached_) {
    return absl::InternalError(absl::StrCat("eviction order has ", listed,
                                            " of ", cached_, " blocks"));
  }
  listed = 0;
  for (const BlockList& list : quarantine_) listed += list.size();
  if (listed != quarantined_) {
    return absl::InternalError(absl::StrCat("quarantine lists have ", listed,
                                            " of ", quarantined_, " blocks"));
  }
  const uint64_t slots = uint64_t{capacity()} * block_tokens_;
  const SlotCounts s = Slots();
  if (s.Total() != slots || s.live != recount.live || s.tail != recount.tail ||
      s.lookahead != recount.lookahead || s.reserved != recount.reserved ||
      s.cached != recount.cached || s.duplicate != recount.duplicate ||
      s.quarantined != recount.quarantined || s.free != recount.free) {
    return absl::InternalError(
        absl::StrCat("slot states add up to ", s.Total(), " of ", slots,
                     "; live ", s.live, " recounted ", recount.live, ", tail ",
                     s.tail, " recounted ", recount.tail, ", duplicate ",
                     s.duplicate, " recounted ", recount.duplicate));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal
