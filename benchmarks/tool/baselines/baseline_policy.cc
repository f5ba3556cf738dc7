// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/baselines/baseline_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {

absl::Status NotNow(uint64_t needed, uint64_t free, uint64_t capacity) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "need ", needed, " slots, ", free, " of ", capacity, " free"));
}

absl::Status NeverFits(size_t request, uint64_t needed, uint64_t capacity) {
  return absl::OutOfRangeError(absl::StrCat("request ", request,
                                            " never fits: it needs ", needed,
                                            " slots of ", capacity));
}

absl::StatusOr<AdmittedTokens> BaselinePolicy::Admit(size_t request,
                                                     uint32_t prompt,
                                                     uint32_t chunk) {
  PAGED_KV_CHECK(!running_.contains(request));
  PAGED_KV_RETURN_IF_ERROR(CheckFits(request));
  Running running;
  running.length = std::min(prompt, chunk);
  PAGED_KV_ASSIGN_OR_RETURN(running.held, Hold(request, running.length, 0));
  PAGED_KV_CHECK(running.held >= running.length);
  live_ += running.length;
  held_ += running.held;
  running_.emplace(request, running);
  return AdmittedTokens{0, running.length};
}

absl::Status BaselinePolicy::Grow(size_t request, uint32_t length) {
  const auto it = running_.find(request);
  PAGED_KV_CHECK(it != running_.end());
  Running& running = it->second;
  PAGED_KV_CHECK(length > running.length);
  if (length > running.held) {
    PAGED_KV_ASSIGN_OR_RETURN(const uint64_t held,
                              Hold(request, length, running.held));
    PAGED_KV_CHECK(held >= length);
    held_ += held - running.held;
    running.held = held;
  }
  live_ += length - running.length;
  running.length = length;
  return absl::OkStatus();
}

SlotCounts BaselinePolicy::Release(size_t request) {
  const auto it = running_.find(request);
  PAGED_KV_CHECK(it != running_.end());
  const Running running = it->second;
  running_.erase(it);
  LetGo(request);
  live_ -= running.length;
  held_ -= running.held;
  return Counts(running.length, running.held);
}

SlotCounts BaselinePolicy::Slots() const {
  SlotCounts counts = Counts(live_, held_);
  counts.free = capacity_slots_ - held_;
  return counts;
}

SlotCounts BaselinePolicy::Counts(uint64_t live, uint64_t held) const {
  SlotCounts counts;
  counts.live = live;
  (unused_ == Unused::kTail ? counts.tail : counts.reserved) = held - live;
  return counts;
}

}  // namespace paged_kv::tool
