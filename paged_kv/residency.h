// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the K/V of sequences is, and what steps do to that.
//
// A sequence is at home in one tier: there its next K/V is written, and there
// its steps read. One that is at home on the device is seated on the pages of
// all its blocks; one in host memory may be seated on those of its first whole
// blocks. Nothing here does anything without a device tier.

#ifndef PAGED_KV_RESIDENCY_H_
#define PAGED_KV_RESIDENCY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/cache_results.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/tier_transfer.h"

namespace paged_kv::internal {

// Sequence::seated_tokens of a sequence at home on the device.
inline constexpr uint32_t kAllTokens = 0xFFFFFFFFu;

inline bool IsOnDevice(const Sequence& sequence) {
  return sequence.seated_tokens == kAllTokens;
}
inline bool IsSeated(const Sequence& sequence, const GroupGeometry& group,
                     uint32_t logical) {
  return (uint64_t{logical} + 1) * group.block_tokens <= sequence.seated_tokens;
}

// KvCacheManager::Residency().
SequenceResidency DescribeResidency(const CacheState& state, uint32_t slot);

// ---- Steps ----

// Whether a step may extend the sequence at `slot` by the tokens [first, end):
// its K/V has arrived where it is at home, and no transfer touches a block that
// it would write. ResourceExhausted: transfers are in flight.
// FailedPrecondition: some did not arrive; swap again.
absl::Status CheckReady(CacheState* state, uint32_t slot, uint32_t first,
                        uint32_t end);

// Takes the page on the device of a block that a sequence on the device has
// just got; the step will write it.
uint32_t SeatNewBlock(CacheState* state, uint32_t slot, uint32_t g,
                      uint32_t logical, BlockId block);

// The step writes the tokens [first, end) of the sequence in place: the other
// tier's pages are stale from now on.
void NoteWrites(CacheState* state, uint32_t slot, uint32_t first, uint32_t end);

// The page on the device behind which the page of a block should lie: that of
// the block before it in the same split.
uint32_t PageBefore(const CacheState& state, uint32_t slot, uint32_t g,
                    uint32_t logical);

// ---- Seats ----

// Gives up the seat on a block's page, before the reference to the block.
void Unseat(CacheState* state, const BlockPool& pool, BlockId block);
// The same for all blocks that hold tokens from `tokens` on. The sequence is at
// home in host memory then.
void UnseatFrom(CacheState* state, uint32_t slot, uint32_t tokens);
// Seats a fork, whose tables are made, where its parent is seated.
void SeatFork(CacheState* state, uint32_t slot);

// Calls f(logical) for the blocks that a sequence holds in a group, last first.
template <typename F>
void ForEachHeldBlockBackwards(const CacheState& state, uint32_t slot,
                               uint32_t g, F f) {
  const BlockId* table = state.sequences.blocks(slot, state.groups[g]);
  for (uint32_t i = state.sequences.extent(slot, g).size; i-- > 0;) {
    if (table[i] != kNoBlock) f(i);
  }
}

// Slots of the block that hold K/V, written or about to be, drafts included.
inline uint32_t ContentSlots(const BlockPool& pool, BlockId block) {
  const BlockMeta& meta = pool.meta(block);
  // A block in quarantine has no drafts, and another use for their number.
  return pool.state(block) == BlockState::kQuarantined
             ? meta.filled
             : meta.filled + meta.ahead;
}

}  // namespace paged_kv::internal

#endif  // PAGED_KV_RESIDENCY_H_
