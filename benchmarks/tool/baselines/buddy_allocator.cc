// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/baselines/buddy_allocator.h"

#include "absl/numeric/bits.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

constexpr uint32_t kOrders = 64;

uint64_t Length(uint32_t order) { return uint64_t{1} << order; }

}  // namespace

BuddyAllocator::BuddyAllocator(uint64_t size)
    : size_(size), free_total_(size), free_(kOrders) {
  // The set bits of the size, highest first, are maximal aligned regions.
  uint64_t start = 0;
  for (uint32_t order = kOrders; order-- > 0;) {
    if ((size & Length(order)) == 0) continue;
    free_[order].insert(start);
    start += Length(order);
  }
}

std::optional<uint32_t> BuddyAllocator::max_order() const {
  if (size_ == 0) return std::nullopt;
  return static_cast<uint32_t>(absl::bit_width(size_) - 1);
}

std::optional<uint64_t> BuddyAllocator::Allocate(uint32_t order) {
  uint32_t found = order;
  while (found < kOrders && free_[found].empty()) ++found;
  if (found >= kOrders) return std::nullopt;
  const uint64_t start = *free_[found].begin();
  free_[found].erase(free_[found].begin());
  while (found > order) {
    --found;
    free_[found].insert(start + Length(found));
  }
  free_total_ -= Length(order);
  return start;
}

void BuddyAllocator::Free(uint64_t start, uint32_t order) {
  PAGED_KV_CHECK(start % Length(order) == 0 && Exists(start, order));
  free_total_ += Length(order);
  for (;;) {
    const uint64_t buddy = start ^ Length(order);
    if (!Exists(buddy, order) || free_[order].erase(buddy) == 0) break;
    start &= ~Length(order);
    ++order;
  }
  PAGED_KV_CHECK(free_[order].insert(start).second);
}

std::optional<uint64_t> BuddyAllocator::Double(uint64_t start, uint32_t order) {
  const uint64_t buddy = start ^ Length(order);
  if (free_[order].erase(buddy) == 0) return std::nullopt;
  free_total_ -= Length(order);
  return start & ~Length(order);
}

}  // namespace paged_kv::tool
