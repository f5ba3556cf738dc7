// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TIER_CHECK_H_
#define PAGED_KV_TIER_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// The first broken invariant of the device tier: each page's seats equal those
// of the sequences; no free block has a page; cached blocks with a
// transfer in flight are held back; blocks that wait for a transfer have one;
// the K/V of sequences that have settled is valid where they are at home. OK
// without a device tier. O(blocks + pages + table entries).
absl::Status CheckTiers(const CacheState& state);

// Calls f(number) for all that decides what the tier does from now on.
template <typename F>
void VisitTierState(const DeviceTier& tier, F f) {
  for (uint32_t i = 0; i < tier.capacity(); ++i) {
    const DevicePage& page = tier.page(i);
    f(page.block);
    f(page.seats);
    f(page.transfers);
    f(static_cast<uint32_t>(page.state));
    f(static_cast<uint32_t>(page.transfer));
    f(static_cast<uint32_t>(page.dirty));
    if (page.block == 0) continue;  // the rest is of former owners
    f(page.logical);
    f(page.group);
    if (page.state == DevicePageState::kQuarantined) f(page.list);
  }
  for (uint32_t split = 0; split < tier.splits(); ++split) {
    for (uint32_t page = tier.FirstClean(split); page != kNoPage;
         page = tier.NextClean(page)) {
      f(page);
    }
    for (uint32_t page = tier.FirstDirty(split); page != kNoPage;
         page = tier.NextDirty(page)) {
      f(page);
    }
  }
  tier.pool().VisitState(f);
}

}  // namespace paged_kv::internal

#endif  // PAGED_KV_TIER_CHECK_H_
