// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The blocks of one pool as the naive model sees them.

#ifndef PAGED_KV_TESTS_SUPPORT_REFERENCE_POOL_H_
#define PAGED_KV_TESTS_SUPPORT_REFERENCE_POOL_H_

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "paged_kv/cache_stats.h"
#include "paged_kv/eviction_policy.h"
#include "tests/support/reference_content.h"

namespace paged_kv::testing {

enum class ReferenceState : uint8_t { kFree, kHeld, kCached, kQuarantined };

struct ReferenceBlock {
  ReferenceState state = ReferenceState::kFree;
  uint32_t refs = 0;
  uint32_t filled = 0;  // slots that hold a token's K/V
  uint32_t ahead = 0;   // slots for drafts behind them
  // Highest of the sequences that released it since it was taken.
  uint32_t priority = 0;
  bool duplicate = false;                 // not the first copy of its content
  ReferenceContent* content = nullptr;    // null: not shareable
  uint32_t place = 0;                     // which block of the content's chunk
  uint64_t fence = 0;                     // quarantined until this step retires
  std::list<uint32_t>::iterator waiting;  // on the list of its state
};

// Keeps the numbers of blocks and slots in each state up to date, so that they
// can be compared after every operation.
//
// Rules:
// - Of a held block, filled slots are live (duplicate in a further copy of
//   some content), then come draft slots; the rest is tail, or reserved in a
//   block that has neither. A block in another state counts as a whole.
// - Cached blocks give way in the order of priority, and within one priority
//   in the order in which they became cached.
// - A shared block, and a shareable one, keep their count of filled slots
//   until their only owner writes into them.
class ReferencePool {
 public:
  ReferencePool(uint32_t blocks, uint32_t block_tokens);

  uint32_t capacity() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t block_tokens() const { return block_tokens_; }
  const ReferenceBlock& operator[](uint32_t id) const { return blocks_[id]; }

  uint32_t Count(ReferenceState state) const {
    return counts_[static_cast<size_t>(state)];
  }
  uint32_t Available() const {
    return Count(ReferenceState::kFree) + Count(ReferenceState::kCached);
  }
  const SlotCounts& slots() const { return slots_; }

  // What the engine has written into each slot: the number of the write.
  std::vector<uint64_t>& written() { return written_; }
  const std::vector<uint64_t>& written() const { return written_; }

  // Cached blocks of one priority, the next to go first.
  const std::list<uint32_t>& cached(uint32_t priority) const {
    return cached_[priority];
  }
  // Blocks in quarantine, the longest-waiting first.
  const std::list<uint32_t>& quarantined() const { return quarantined_; }

  // ---- Changes ----

  void Take(uint32_t id);    // a free block, or a cached one without content
  void AddRef(uint32_t id);  // a held, cached or quarantined block
  bool DropRef(uint32_t id) { return --blocks_[id].refs == 0; }
  void Quarantine(uint32_t id, uint64_t fence);
  void ToCached(uint32_t id);
  void ToFree(uint32_t id);
  // Makes a quarantined block held without references.
  void EndQuarantine(uint32_t id);
  // Makes a cached block held without references.
  void Uncache(uint32_t id);

  void SetFill(uint32_t id, uint32_t filled, uint32_t ahead);
  void SetContent(uint32_t id, ReferenceContent* content, uint32_t place,
                  bool duplicate);
  void SetDuplicate(uint32_t id, bool duplicate);
  void RaisePriority(uint32_t id, uint32_t priority);

  // The first difference between the numbers kept and a recount; empty if
  // there is none.
  std::string Recount() const;

 private:
  void Account(const ReferenceBlock& block, int sign, SlotCounts* slots) const;
  void SetState(uint32_t id, ReferenceState state);

  uint32_t block_tokens_;
  std::vector<ReferenceBlock> blocks_;
  std::vector<uint64_t> written_;
  std::array<uint32_t, 4> counts_{};
  SlotCounts slots_;
  std::array<std::list<uint32_t>, kPriorities> cached_;
  std::list<uint32_t> quarantined_;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_REFERENCE_POOL_H_
