// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_BASELINES_REGION_ALLOCATOR_H_
#define PAGED_KV_BENCHMARKS_TOOL_BASELINES_REGION_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>

namespace paged_kv::tool {

// Regions of any length from one contiguous range, lowest address first
// (first fit); neighbouring free regions merge at once.
//
// Thread safety: none.
// Invariants: free regions are disjoint, not empty and not adjacent.
class RegionAllocator {
 public:
  explicit RegionAllocator(uint64_t size);

  // Start of a region of `length`; nullopt if no free region is long enough,
  // even if the free ones together are. REQUIRES: length > 0.
  std::optional<uint64_t> Allocate(uint64_t length);
  // REQUIRES: the region was allocated with this length.
  void Free(uint64_t start, uint64_t length);

  uint64_t free_total() const { return free_total_; }

 private:
  std::map<uint64_t, uint64_t> free_;  // start -> length
  uint64_t free_total_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_BASELINES_REGION_ALLOCATOR_H_
