// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_BASELINES_BUDDY_ALLOCATOR_H_
#define PAGED_KV_BENCHMARKS_TOOL_BASELINES_BUDDY_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace paged_kv::tool {

// Power-of-two regions, split and merged in halves (Knowlton 1965, "A Fast
// Storage Allocator"). A size that is no power of two is covered by maximal
// aligned regions.
//
// Thread safety: none.
// Invariants: free regions are disjoint and aligned to their length; a region
// and its buddy are never both free.
class BuddyAllocator {
 public:
  explicit BuddyAllocator(uint64_t size);

  // Start of a region of 2^order; the lowest of the smallest that fit.
  std::optional<uint64_t> Allocate(uint32_t order);
  // REQUIRES: the region was allocated with this order.
  void Free(uint64_t start, uint32_t order);
  // Doubles a region over its free buddy and returns the new start, which is
  // lower if the buddy was; nullopt if the buddy is in use.
  std::optional<uint64_t> Double(uint64_t start, uint32_t order);

  uint64_t free_total() const { return free_total_; }
  // The largest order that an empty allocator can serve; nullopt if size is 0.
  std::optional<uint32_t> max_order() const;

 private:
  // True if [start, start + 2^order) lies in the range.
  bool Exists(uint64_t start, uint32_t order) const {
    return start + (uint64_t{1} << order) <= size_;
  }

  const uint64_t size_;
  uint64_t free_total_;
  std::vector<std::set<uint64_t>> free_;  // [order]
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_BASELINES_BUDDY_ALLOCATOR_H_
