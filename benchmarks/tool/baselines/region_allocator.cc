// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/baselines/region_allocator.h"

#include <iterator>

#include "paged_kv/check.h"

namespace paged_kv::tool {

RegionAllocator::RegionAllocator(uint64_t size) : free_total_(size) {
  if (size > 0) free_.emplace(0, size);
}

std::optional<uint64_t> RegionAllocator::Allocate(uint64_t length) {
  PAGED_KV_CHECK(length > 0);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [start, free_length] = *it;
    if (free_length < length) continue;
    free_.erase(it);
    if (free_length > length) {
      free_.emplace(start + length, free_length - length);
    }
    free_total_ -= length;
    return start;
  }
  return std::nullopt;
}

void RegionAllocator::Free(uint64_t start, uint64_t length) {
  free_total_ += length;
  const auto next = free_.lower_bound(start);
  uint64_t end = start + length;
  if (next != free_.end()) {
    PAGED_KV_CHECK(next->first >= end);
    if (next->first == end) end += next->second;
  }
  const bool merges_next = end != start + length;
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    PAGED_KV_CHECK(previous->first + previous->second <= start);
    if (previous->first + previous->second == start) {
      previous->second = end - previous->first;
      if (merges_next) free_.erase(next);
      return;
    }
  }
  if (merges_next) free_.erase(next);
  free_.emplace(start, end - start);
}

}  // namespace paged_kv::tool
