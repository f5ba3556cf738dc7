// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/baselines/region_allocator.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "benchmarks/tool/random.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

// First fit over a map of single slots.
class SlotMap {
 public:
  explicit SlotMap(size_t size) : used_(size, false) {}

  std::optional<uint64_t> Allocate(uint64_t length) {
    for (size_t start = 0; start + length <= used_.size(); ++start) {
      size_t free = 0;
      while (free < length && !used_[start + free]) ++free;
      if (free < length) continue;
      Set(start, length, true);
      return start;
    }
    return std::nullopt;
  }

  void Set(uint64_t start, uint64_t length, bool used) {
    for (uint64_t i = 0; i < length; ++i) {
      EXPECT_NE(used_[start + i], used);
      used_[start + i] = used;
    }
  }

  uint64_t Free() const {
    uint64_t free = 0;
    for (const bool used : used_) free += used ? 0 : 1;
    return free;
  }

 private:
  std::vector<bool> used_;
};

TEST(RegionAllocatorTest, AgreesWithAMapOfSlots) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const uint32_t size = 1 + random.Below(200);
    RegionAllocator allocator(size);
    SlotMap map(size);
    std::vector<std::pair<uint64_t, uint64_t>> held;
    for (int op = 0; op < 2000; ++op) {
      if (held.empty() || random.Chance(550)) {
        const uint64_t length = 1 + random.Below(size / 4 + 1);
        const std::optional<uint64_t> start = allocator.Allocate(length);
        ASSERT_EQ(start, map.Allocate(length)) << "seed " << seed;
        if (start.has_value()) held.emplace_back(*start, length);
      } else {
        const size_t at = random.Below(static_cast<uint32_t>(held.size()));
        allocator.Free(held[at].first, held[at].second);
        map.Set(held[at].first, held[at].second, false);
        held[at] = held.back();
        held.pop_back();
      }
      ASSERT_EQ(allocator.free_total(), map.Free()) << "seed " << seed;
    }
  }
}

TEST(RegionAllocatorTest, FreeNeighboursMergeInEveryOrder) {
  const std::vector<std::vector<uint64_t>> orders = {
      {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const std::vector<uint64_t>& order : orders) {
    RegionAllocator allocator(30);
    for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(allocator.Allocate(10), i * 10);
    EXPECT_EQ(allocator.Allocate(1), std::nullopt);
    for (const uint64_t i : order) allocator.Free(i * 10, 10);
    EXPECT_EQ(allocator.Allocate(30), 0u);
  }
}

TEST(RegionAllocatorTest, EmptyRangeHasNothing) {
  RegionAllocator allocator(0);
  EXPECT_EQ(allocator.Allocate(1), std::nullopt);
}

}  // namespace
}  // namespace paged_kv::tool
