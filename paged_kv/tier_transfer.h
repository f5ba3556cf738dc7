// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What moves between host memory and a device: plain data, which says nothing
// of how it is moved.

#ifndef PAGED_KV_TIER_TRANSFER_H_
#define PAGED_KV_TIER_TRANSFER_H_

#include <cstdint>

#include "paged_kv/types.h"

namespace paged_kv {

// Where a page lies. A block has a page in host memory, whose index is the
// block's id, and may have one on the device besides, which has an index of its
// own.
enum class Tier : uint8_t { kHost, kDevice };

// An index of no page.
inline constexpr uint32_t kNoPage = 0xFFFFFFFFu;

// A transfer of one page. Never reused while anything could confuse it with an
// older one: its low half names the page on the device, its high half counts
// the transfers which that page has had.
using TransferId = StrongId<struct TransferIdTag, uint64_t>;

// The bytes of one page, to be copied from a tier to the other. Transfers that
// the manager gives out touch different pages and may run in any order; until
// one is reported finished, neither of its pages is given to anybody else.
struct TierTransfer {
  TransferId id;
  GroupId group;
  uint32_t logical = 0;  // place of the block in its sequence
  Tier source_tier = Tier::kHost;
  Tier target_tier = Tier::kDevice;
  uint32_t source_page = kNoPage;  // in the group's pool of source_tier
  uint32_t target_page = kNoPage;
  // Slots of the page that hold, or with `after_step` will hold, K/V. The rest
  // of the page need not be moved.
  uint32_t filled_tokens = 0;
  // The step in flight that writes the source: a layer may be copied once it is
  // written (KvCacheManager::MarkWritten), all of it when the step retires. 0:
  // everything is written.
  StepId after_step{0};
};

}  // namespace paged_kv

#endif  // PAGED_KV_TIER_TRANSFER_H_
