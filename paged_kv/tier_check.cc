// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/tier_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "paged_kv/residency.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

using Seats = std::vector<std::vector<uint32_t>>;  // [pool][page]

absl::Status CheckSequence(const CacheState& state, uint32_t slot,
                           Seats* seats) {
  const Sequence& sequence = state.sequences.at(slot);
  absl::Status status;
  for (uint32_t g = 0; g < state.groups.size(); ++g) {
    const GroupGeometry& group = state.groups[g];
    const DeviceTier& tier = *state.tiers[group.pool];
    const BlockId* table = state.sequences.blocks(slot, group);
    ForEachHeldBlockBackwards(state, slot, g, [&](uint32_t logical) {
      const BlockId block = table[logical];
      const uint32_t page = tier.PageOf(block);
      const auto broken = [&](const char* what) {
        status = absl::InternalError(absl::StrCat("sequence slot ", slot,
                                                  ", group ", g, ": block ",
                                                  block.value(), " ", what));
      };
      if (page != kNoPage && tier.page(page).logical != logical) {
        broken("has a page for another place");
      }
      if (IsSeated(sequence, group, logical)) {
        if (page == kNoPage) {
          broken("is seated without a page");
        } else {
          ++(*seats)[group.pool][page];
        }
      }
      if (sequence.settling || sequence.is_pin) return;
      if (IsOnDevice(sequence) ? !tier.DeviceValid(block)
                               : !tier.HostValid(block)) {
        broken("is not valid where its sequence is at home");
      }
    });
  }
  return status;
}

absl::Status CheckPool(const CacheState& state, uint32_t number,
                       const std::vector<uint32_t>& seats) {
  const DeviceTier& tier = *state.tiers[number];
  const BlockPool& pool = *state.pools[number];
  PAGED_KV_RETURN_IF_ERROR(tier.CheckInvariants());
  for (uint32_t page = 0; page < tier.capacity(); ++page) {
    if (tier.page(page).seats == seats[page]) continue;
    return absl::InternalError(absl::StrCat(
        "device page ", page, " of pool ", number, " counts ",
        tier.page(page).seats, " seats, sequences have ", seats[page]));
  }
  uint32_t held_back = 0;
  for (uint32_t i = 0; i < pool.capacity(); ++i) {
    const BlockId block(i);
    const BlockState where = pool.state(block);
    const bool moves = tier.InTransfer(block);
    const bool has_page = tier.PageOf(block) != kNoPage;
    const bool waits = where == BlockState::kQuarantined &&
                       pool.QuarantineList(block) == state.TransferQuarantine();
    if ((where == BlockState::kFree && has_page) || (waits && !moves)) {
      return absl::InternalError(absl::StrCat(
          "block ", i, " of pool ", number, " in state ",
          static_cast<int>(where), has_page ? " has" : " has no",
          " device page", moves ? " and a transfer in flight" : ""));
    }
    held_back += where == BlockState::kCached && moves ? 1 : 0;
  }
  if (held_back != pool.held_back()) {
    return absl::InternalError(absl::StrCat(
        "pool ", number, " holds ", pool.held_back(), " cached blocks back, ",
        held_back, " are being written back"));
  }
  if (state.steps_in_flight() == 0 &&
      tier.Stats().quarantined > BlockCount(0)) {
    return absl::InternalError(
        absl::StrCat("pool ", number, " has ", tier.Stats().quarantined.value(),
                     " device pages in quarantine and no step in flight"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTiers(const CacheState& state) {
  Seats seats;
  for (const auto& tier : state.tiers) seats.emplace_back(tier->capacity(), 0);
  for (uint32_t slot = 0; slot < state.sequences.slots(); ++slot) {
    const Sequence& sequence = state.sequences.at(slot);
    if (!sequence.alive || state.tiers.empty()) continue;
    PAGED_KV_RETURN_IF_ERROR(CheckSequence(state, slot, &seats));
  }
  for (uint32_t pool = 0; pool < state.tiers.size(); ++pool) {
    PAGED_KV_RETURN_IF_ERROR(CheckPool(state, pool, seats[pool]));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal
