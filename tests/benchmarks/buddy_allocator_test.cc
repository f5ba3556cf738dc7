// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/baselines/buddy_allocator.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "benchmarks/tool/random.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

// A map of single slots that follows the definition of the buddy system: the
// free regions are the maximal aligned runs of free slots that are no larger
// than the range allows, and a request takes the lowest of the smallest.
class SlotMap {
 public:
  explicit SlotMap(uint64_t size) : used_(size, false) {}

  bool AllFree(uint64_t start, uint64_t length) const {
    if (start + length > used_.size()) return false;
    for (uint64_t i = 0; i < length; ++i) {
      if (used_[start + i]) return false;
    }
    return true;
  }

  std::optional<uint64_t> Allocate(uint32_t order) {
    for (uint32_t larger = order; larger < 16; ++larger) {
      const uint64_t length = uint64_t{1} << larger;
      for (uint64_t start = 0; start + length <= used_.size();
           start += length) {
        // Maximal: its parent is not a free region itself.
        const uint64_t parent = start & ~length;
        if (AllFree(start, length) && !AllFree(parent, 2 * length)) {
          Set(start, uint64_t{1} << order, true);
          return start;
        }
      }
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

TEST(BuddyAllocatorTest, AgreesWithAMapOfSlots) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const uint32_t size = 1 + random.Below(300);
    BuddyAllocator allocator(size);
    SlotMap map(size);
    struct Region {
      uint64_t start;
      uint32_t order;
    };
    std::vector<Region> held;
    for (int op = 0; op < 1500; ++op) {
      const uint32_t choice = random.Below(100);
      if (held.empty() || choice < 50) {
        const uint32_t order = random.Below(7);
        const std::optional<uint64_t> start = allocator.Allocate(order);
        ASSERT_EQ(start, map.Allocate(order)) << "seed " << seed;
        if (start.has_value()) held.push_back({*start, order});
      } else if (choice < 65) {
        Region& region = held[random.Below(static_cast<uint32_t>(held.size()))];
        const uint64_t length = uint64_t{1} << region.order;
        const uint64_t buddy = region.start ^ length;
        const bool possible = map.AllFree(buddy, length);
        const std::optional<uint64_t> start =
            allocator.Double(region.start, region.order);
        ASSERT_EQ(start.has_value(), possible) << "seed " << seed;
        if (possible) {
          ASSERT_EQ(*start, region.start & ~length);
          map.Set(buddy, length, true);
          region = {*start, region.order + 1};
        }
      } else {
        const size_t at = random.Below(static_cast<uint32_t>(held.size()));
        allocator.Free(held[at].start, held[at].order);
        map.Set(held[at].start, uint64_t{1} << held[at].order, false);
        held[at] = held.back();
        held.pop_back();
      }
      ASSERT_EQ(allocator.free_total(), map.Free()) << "seed " << seed;
    }
  }
}

TEST(BuddyAllocatorTest, MaxOrderIsTheLargestRegion) {
  EXPECT_EQ(BuddyAllocator(0).max_order(), std::nullopt);
  EXPECT_EQ(BuddyAllocator(1).max_order(), 0u);
  EXPECT_EQ(BuddyAllocator(1023).max_order(), 9u);
  EXPECT_EQ(BuddyAllocator(1024).max_order(), 10u);
  BuddyAllocator allocator(1023);
  EXPECT_TRUE(allocator.Allocate(9).has_value());
  EXPECT_FALSE(allocator.Allocate(9).has_value());
}

}  // namespace
}  // namespace paged_kv::tool
