// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/residency.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/check.h"
#include "paged_kv/shortage.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

// Whether all K/V of the sequence is valid where it is at home.
absl::Status CheckArrived(CacheState* state, uint32_t slot) {
  Sequence& sequence = state->sequences.at(slot);
  if (!sequence.settling) return absl::OkStatus();
  const SequenceResidency found = DescribeResidency(*state, slot);
  const uint64_t id = state->sequences.IdOf(slot).value();
  const char* tier_name =
      found.home == Tier::kDevice ? "the device" : "host memory";
  if (found.missing > BlockCount(0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "sequence ", id, ": ", found.missing.value(), " of its ",
        found.blocks.value(), " blocks are not valid in ", tier_name, " (",
        found.moving.value(), " are on their way); swap it in or out again"));
  }
  if (found.moving > BlockCount(0)) {
    return ShortageError(
        Shortage::kTransfers,
        absl::StrCat("not now: ", found.moving.value(), " of the ",
                     found.blocks.value(), " blocks of sequence ", id,
                     " are on their way to ", tier_name));
  }
  sequence.settling = false;
  return absl::OkStatus();
}

}  // namespace

SequenceResidency DescribeResidency(const CacheState& state, uint32_t slot) {
  SequenceResidency found;
  const bool on_device = IsOnDevice(state.sequences.at(slot));
  if (on_device) found.home = Tier::kDevice;
  for (uint32_t g = 0; g < state.groups.size(); ++g) {
    const GroupGeometry& group = state.groups[g];
    const Bytes page_bytes = PageBytes(state.options.groups[g].shape);
    const BlockId* table = state.sequences.blocks(slot, group);
    const DeviceTier* tier = state.TierOf(state.PoolOf(group));
    ForEachHeldBlockBackwards(state, slot, g, [&](uint32_t logical) {
      const BlockId block = table[logical];
      found.blocks += BlockCount(1);
      found.bytes += page_bytes;
      if (tier == nullptr) return;
      if (!tier->HostValid(block)) found.device_only_bytes += page_bytes;
      if (on_device ? tier->DeviceValid(block) : tier->HostValid(block)) return;
      (tier->InTransfer(block) ? found.moving : found.missing) += BlockCount(1);
    });
  }
  return found;
}

absl::Status CheckReady(CacheState* state, uint32_t slot, uint32_t first,
                        uint32_t end) {
  if (state->tiers.empty()) return absl::OkStatus();
  PAGED_KV_RETURN_IF_ERROR(CheckArrived(state, slot));
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    const BlockPool& pool = state->PoolOf(group);
    const BlockId* table = state->sequences.blocks(slot, group);
    const uint32_t blocks =
        std::min(group.BlocksFor(end), state->sequences.extent(slot, g).size);
    for (uint32_t i = first / group.block_tokens; i < blocks; ++i) {
      // A block with other holders is copied, and may be read meanwhile.
      if (pool.meta(table[i]).refs > 1) continue;
      if (!state->TierOf(pool)->InTransfer(table[i])) continue;
      return ShortageError(Shortage::kTransfers,
                           absl::StrCat("not now: block ", table[i].value(),
                                        ", which the step would write, ",
                                        "has a transfer in flight"));
    }
  }
  return absl::OkStatus();
}

uint32_t PageBefore(const CacheState& state, uint32_t slot, uint32_t g,
                    uint32_t logical) {
  const GroupGeometry& group = state.groups[g];
  const DeviceTier& tier = *state.tiers[group.pool];
  if (logical < tier.splits()) return kNoPage;
  const BlockId before =
      state.sequences.blocks(slot, group)[logical - tier.splits()];
  return before == kNoBlock ? kNoPage : tier.PageOf(before);
}

uint32_t SeatNewBlock(CacheState* state, uint32_t slot, uint32_t g,
                      uint32_t logical, BlockId block) {
  const GroupGeometry& group = state->groups[g];
  DeviceTier& tier = *state->TierOf(state->PoolOf(group));
  const uint32_t page =
      tier.Take(block, GroupId(g), logical,
                PageBefore(*state, slot, g, logical), /*run=*/1);
  tier.MarkDirty(page);
  return page;
}

void NoteWrites(CacheState* state, uint32_t slot, uint32_t first,
                uint32_t end) {
  if (state->tiers.empty()) return;
  const bool on_device = IsOnDevice(state->sequences.at(slot));
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    DeviceTier& tier = *state->TierOf(state->PoolOf(group));
    const BlockId* table = state->sequences.blocks(slot, group);
    for (uint32_t i = first / group.block_tokens; i < group.BlocksFor(end);
         ++i) {
      if (on_device) {
        tier.MarkDirty(tier.PageOf(table[i]));
      } else {
        PAGED_KV_DCHECK(tier.HostValid(table[i]));
        tier.Drop(table[i]);
      }
    }
  }
}

void Unseat(CacheState* state, const BlockPool& pool, BlockId block) {
  DeviceTier& tier = *state->TierOf(pool);
  tier.DropSeat(tier.PageOf(block), state->CurrentQuarantine());
}

void UnseatFrom(CacheState* state, uint32_t slot, uint32_t tokens) {
  Sequence& sequence = state->sequences.at(slot);
  if (sequence.seated_tokens <= tokens) return;
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    const BlockId* table = state->sequences.blocks(slot, group);
    // Last first, so that what follows is evicted before its prefix.
    ForEachHeldBlockBackwards(*state, slot, g, [&](uint32_t logical) {
      const uint64_t end = (uint64_t{logical} + 1) * group.block_tokens;
      if (end <= tokens || !IsSeated(sequence, group, logical)) return;
      Unseat(state, state->PoolOf(group), table[logical]);
    });
  }
  sequence.seated_tokens = tokens;
}

void SeatFork(CacheState* state, uint32_t slot) {
  const Sequence& sequence = state->sequences.at(slot);
  if (sequence.seated_tokens == 0) return;
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    const BlockId* table = state->sequences.blocks(slot, group);
    DeviceTier& tier = *state->TierOf(state->PoolOf(group));
    ForEachHeldBlockBackwards(*state, slot, g, [&](uint32_t logical) {
      if (!IsSeated(sequence, group, logical)) return;
      tier.AddSeat(tier.PageOf(table[logical]));
    });
  }
}

}  // namespace paged_kv::internal
