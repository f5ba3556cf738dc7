// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One power-of-two region per request ("Orca (Pow2)" in Kwon et al., SOSP
// 2023, over the buddy allocator that the paper assumes for it). A region that
// is full doubles: over its buddy if that is free, else by moving to a new
// region while the old one is still held.

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/bits.h"
#include "benchmarks/tool/baselines/baseline_policy.h"
#include "benchmarks/tool/baselines/buddy_allocator.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

class BuddyPolicy : public BaselinePolicy {
 public:
  BuddyPolicy(const Trace& trace, uint64_t capacity_slots, uint32_t min_slots)
      : BaselinePolicy(trace, capacity_slots, Unused::kTail),
        min_order_(OrderFor(min_slots)),
        regions_(capacity_slots) {}

  absl::string_view name() const override { return "buddy"; }

  absl::Status CheckFits(size_t request) const override {
    const uint32_t order = std::max(
        min_order_, OrderFor(trace().requests[request].total_tokens()));
    const std::optional<uint32_t> max_order = regions_.max_order();
    if (max_order.has_value() && order <= *max_order) return absl::OkStatus();
    return NeverFits(request, uint64_t{1} << order, capacity_slots());
  }

 protected:
  absl::StatusOr<uint64_t> Hold(size_t request, uint32_t length,
                                uint64_t held) override {
    const uint32_t order = std::max(min_order_, OrderFor(length));
    const auto it = held_.find(request);
    PAGED_KV_CHECK((it == held_.end()) == (held == 0));
    if (it != held_.end() && it->second.order + 1 == order) {
      const std::optional<uint64_t> doubled =
          regions_.Double(it->second.start, it->second.order);
      if (doubled.has_value()) {
        it->second = {*doubled, order};
        return uint64_t{1} << order;
      }
    }
    const std::optional<uint64_t> start = regions_.Allocate(order);
    if (!start.has_value()) {
      return NotNow(uint64_t{1} << order, regions_.free_total(),
                    capacity_slots());
    }
    if (it != held_.end()) regions_.Free(it->second.start, it->second.order);
    held_[request] = {*start, order};
    return uint64_t{1} << order;
  }

  void LetGo(size_t request) override {
    const auto it = held_.find(request);
    regions_.Free(it->second.start, it->second.order);
    held_.erase(it);
  }

 private:
  struct Region {
    uint64_t start;
    uint32_t order;
  };

  // The least order with 2^order >= length. REQUIRES: length > 0.
  static uint32_t OrderFor(uint32_t length) {
    return static_cast<uint32_t>(absl::bit_width(length - 1));
  }

  const uint32_t min_order_;
  BuddyAllocator regions_;
  absl::flat_hash_map<size_t, Region> held_;
};

}  // namespace

std::unique_ptr<MemoryPolicy> MakeBuddyPolicy(const Trace& trace,
                                              uint64_t capacity_slots,
                                              uint32_t min_slots) {
  return std::make_unique<BuddyPolicy>(trace, capacity_slots, min_slots);
}

}  // namespace paged_kv::tool
