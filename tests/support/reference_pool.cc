// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/reference_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::testing {

ReferencePool::ReferencePool(uint32_t blocks, uint32_t block_tokens)
    : block_tokens_(block_tokens),
      blocks_(blocks),
      written_(size_t{blocks} * block_tokens) {
  counts_[0] = blocks;
  slots_.free = uint64_t{blocks} * block_tokens;
}

void ReferencePool::Account(const ReferenceBlock& block, int sign,
                            SlotCounts* slots) const {
  const auto add = [sign](uint64_t* counter, uint32_t n) {
    *counter += static_cast<uint64_t>(int64_t{sign} * n);
  };
  switch (block.state) {
    case ReferenceState::kFree:
      return add(&slots->free, block_tokens_);
    case ReferenceState::kCached:
      return add(&slots->cached, block_tokens_);
    case ReferenceState::kQuarantined:
      return add(&slots->quarantined, block_tokens_);
    case ReferenceState::kHeld:
      break;
  }
  const uint32_t used = block.filled + block.ahead;
  add(block.duplicate ? &slots->duplicate : &slots->live, block.filled);
  add(&slots->lookahead, block.ahead);
  add(used > 0 ? &slots->tail : &slots->reserved, block_tokens_ - used);
}

void ReferencePool::SetState(uint32_t id, ReferenceState state) {
  ReferenceBlock& block = blocks_[id];
  Account(block, -1, &slots_);
  --counts_[static_cast<size_t>(block.state)];
  block.state = state;
  ++counts_[static_cast<size_t>(block.state)];
  Account(block, 1, &slots_);
}

void ReferencePool::Take(uint32_t id) {
  ReferenceBlock& block = blocks_[id];
  PAGED_KV_CHECK(block.content == nullptr && block.refs == 0);
  if (block.state == ReferenceState::kCached) {
    cached_[block.priority].erase(block.waiting);
  } else {
    PAGED_KV_CHECK(block.state == ReferenceState::kFree);
  }
  SetState(id, ReferenceState::kHeld);
  SetFill(id, 0, 0);
  block.refs = 1;
  block.priority = 0;
}

void ReferencePool::AddRef(uint32_t id) {
  ReferenceBlock& block = blocks_[id];
  if (block.state == ReferenceState::kCached) Uncache(id);
  if (block.state == ReferenceState::kQuarantined) EndQuarantine(id);
  PAGED_KV_CHECK(block.state == ReferenceState::kHeld);
  ++block.refs;
}

void ReferencePool::Quarantine(uint32_t id, uint64_t fence) {
  SetState(id, ReferenceState::kQuarantined);
  blocks_[id].fence = fence;
  blocks_[id].waiting = quarantined_.insert(quarantined_.end(), id);
}

void ReferencePool::ToCached(uint32_t id) {
  SetState(id, ReferenceState::kCached);
  std::list<uint32_t>& list = cached_[blocks_[id].priority];
  blocks_[id].waiting = list.insert(list.end(), id);
}

void ReferencePool::ToFree(uint32_t id) {
  ReferenceBlock& block = blocks_[id];
  PAGED_KV_CHECK(block.content == nullptr && block.refs == 0);
  SetFill(id, 0, 0);
  SetState(id, ReferenceState::kFree);
  block.priority = 0;
}

void ReferencePool::EndQuarantine(uint32_t id) {
  quarantined_.erase(blocks_[id].waiting);
  SetState(id, ReferenceState::kHeld);
}

void ReferencePool::Uncache(uint32_t id) {
  cached_[blocks_[id].priority].erase(blocks_[id].waiting);
  SetState(id, ReferenceState::kHeld);
}

void ReferencePool::SetFill(uint32_t id, uint32_t filled, uint32_t ahead) {
  ReferenceBlock& block = blocks_[id];
  Account(block, -1, &slots_);
  block.filled = filled;
  block.ahead = ahead;
  Account(block, 1, &slots_);
}

void ReferencePool::SetContent(uint32_t id, ReferenceContent* content,
                               uint32_t place, bool duplicate) {
  blocks_[id].content = content;
  blocks_[id].place = place;
  SetDuplicate(id, duplicate);
}

void ReferencePool::SetDuplicate(uint32_t id, bool duplicate) {
  ReferenceBlock& block = blocks_[id];
  Account(block, -1, &slots_);
  block.duplicate = duplicate;
  Account(block, 1, &slots_);
}

void ReferencePool::RaisePriority(uint32_t id, uint32_t priority) {
  blocks_[id].priority = std::max(blocks_[id].priority, priority);
}

std::string ReferencePool::Recount() const {
  SlotCounts slots;
  std::array<uint32_t, 4> counts{};
  for (const ReferenceBlock& block : blocks_) {
    Account(block, 1, &slots);
    ++counts[static_cast<size_t>(block.state)];
    if ((block.state == ReferenceState::kHeld) != (block.refs > 0)) {
      return absl::StrCat("model: block ", &block - blocks_.data(), " has ",
                          block.refs, " references in state ",
                          static_cast<int>(block.state));
    }
  }
  if (counts != counts_) return "model: counts of blocks are off";
  const uint64_t total = uint64_t{capacity()} * block_tokens_;
  if (slots.live != slots_.live || slots.tail != slots_.tail ||
      slots.lookahead != slots_.lookahead ||
      slots.reserved != slots_.reserved || slots.cached != slots_.cached ||
      slots.duplicate != slots_.duplicate ||
      slots.quarantined != slots_.quarantined || slots.free != slots_.free ||
      slots_.Total() != total) {
    return "model: counts of slots are off";
  }
  return "";
}

}  // namespace paged_kv::testing
