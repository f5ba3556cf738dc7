// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/device_loss.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/residency.h"
#include "paged_kv/sequence_edit.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

// Calls f(tier, pool, page) for the device pages that a block has.
template <typename F>
void ForEachPage(CacheState* state, F f) {
  for (const auto& pool : state->pools) {
    DeviceTier& tier = *state->TierOf(*pool);
    for (uint32_t page = 0; page < tier.capacity(); ++page) {
      if (tier.page(page).block != 0) f(&tier, pool.get(), page);
    }
  }
}

absl::Status CheckNothingMoves(CacheState* state) {
  if (state->tiers.empty()) {
    return absl::FailedPreconditionError(
        "no device tier: KvCacheOptions::device.pages is 0");
  }
  uint32_t moving = 0;
  ForEachPage(state, [&](DeviceTier* tier, BlockPool*, uint32_t page) {
    moving += tier->page(page).transfer != PageTransfer::kNone ? 1 : 0;
  });
  if (moving == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(moving,
                   " transfers are in flight: report how they ended, "
                   "then what the device has lost"));
}

// K/V of the block was on the device alone.
bool IsLost(const DeviceTier& tier, const BlockPool& pool, BlockId block) {
  return !tier.HostValid(block) && ContentSlots(pool, block) > 0;
}

// What is lost is nobody's hit any more; cached content is dropped.
BlockCount ForgetContent(CacheState* state) {
  BlockCount lost(0);
  ForEachPage(state, [&](DeviceTier* tier, BlockPool* pool, uint32_t page) {
    const BlockId block(tier->page(page).block - 1);
    if (!IsLost(*tier, *pool, block)) return;
    lost += BlockCount(1);
    if (pool->shareable(block)) state->index->Detach(pool, block);
    if (pool->state(block) != BlockState::kCached) return;
    pool->Uncache(block);
    SettleBlock(state, pool, block);
  });
  return lost;
}

bool HoldsLostBlock(const CacheState& state, uint32_t slot) {
  bool lost = false;
  for (uint32_t g = 0; g < state.groups.size(); ++g) {
    const GroupGeometry& group = state.groups[g];
    const BlockPool& pool = state.PoolOf(group);
    const DeviceTier& tier = *state.TierOf(pool);
    const BlockId* table = state.sequences.blocks(slot, group);
    ForEachHeldBlockBackwards(state, slot, g, [&](uint32_t logical) {
      lost = lost || IsLost(tier, pool, table[logical]);
    });
  }
  return lost;
}

// Frees the holders of lost blocks.
void CloseLost(CacheState* state, DeviceLoss* loss) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < state->sequences.slots(); ++slot) {
    const Sequence& sequence = state->sequences.at(slot);
    if (!sequence.alive || !HoldsLostBlock(*state, slot)) continue;
    slots.push_back(slot);
    const SequenceId id = state->sequences.IdOf(slot);
    if (sequence.is_pin) {
      loss->pins.push_back(PinId(id.value()));
    } else {
      loss->sequences.push_back(id);
    }
  }
  for (uint32_t slot : slots) CloseSequence(state, slot);
}

}  // namespace

absl::StatusOr<DeviceLoss> LoseDevice(CacheState* state) {
  PAGED_KV_RETURN_IF_ERROR(CheckNothingMoves(state));
  DeviceLoss loss;
  loss.blocks = ForgetContent(state);
  CloseLost(state, &loss);
  for (uint32_t slot = 0; slot < state->sequences.slots(); ++slot) {
    if (state->sequences.at(slot).alive) UnseatFrom(state, slot, 0);
  }
  // Pages that steps in flight name stay nobody's until these retire.
  ForEachPage(state, [&](DeviceTier* tier, BlockPool*, uint32_t page) {
    const BlockId block(tier->page(page).block - 1);
    tier->MarkClean(page);
    tier->Drop(block);
  });
  return loss;
}

}  // namespace paged_kv::internal
