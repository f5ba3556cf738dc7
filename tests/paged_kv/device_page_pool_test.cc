// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/device_page_pool.h"

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::internal {
namespace {

DevicePagePool Make(uint32_t pages, uint32_t splits) {
  DevicePagePool pool;
  EXPECT_TRUE(pool.Create(pages, splits).ok());
  return pool;
}

TEST(DevicePagePoolTest, ASequenceAloneIsOneExtent) {
  DevicePagePool pool = Make(192, 1);
  uint32_t last = kNoPage;
  for (uint32_t i = 0; i < 192; ++i) {
    const uint32_t page = pool.Take(0, last, 1);
    EXPECT_EQ(page, last + 1);  // kNoPage + 1 is 0
    last = page;
  }
  EXPECT_EQ(pool.free(0), 0u);
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

TEST(DevicePagePoolTest, APageGoesBehindTheOneBefore) {
  DevicePagePool pool = Make(128, 1);
  const uint32_t a = pool.Take(0, kNoPage, 1);
  const uint32_t b = pool.Take(0, kNoPage, 1);
  EXPECT_EQ(pool.Take(0, a, 1), a + 1);
  EXPECT_EQ(pool.Take(0, b, 1), b + 1);
  EXPECT_EQ(pool.Take(0, a + 1, 1), a + 2);
}

TEST(DevicePagePoolTest, NewRunsLeaveRoomToThoseBeforeThem) {
  DevicePagePool pool = Make(64, 1);
  const uint32_t first = pool.Take(0, kNoPage, 4);
  for (uint32_t i = 1; i < 4; ++i) pool.Take(0, first + i - 1, 4 - i);
  // Pages 4 to 63 are free: 10 in their middle.
  EXPECT_EQ(pool.Take(0, kNoPage, 10), 4u + 25u);
}

TEST(DevicePagePoolTest, SplitsKeepToTheirRanges) {
  DevicePagePool pool = Make(30, 3);
  EXPECT_EQ(pool.pages_per_split(), 10u);
  std::set<uint32_t> taken;
  uint32_t last = kNoPage;
  for (uint32_t i = 0; i < 10; ++i) {
    last = pool.Take(1, last, 1);
    EXPECT_EQ(pool.SplitOf(last), 1u);
    EXPECT_TRUE(taken.insert(last).second);
  }
  EXPECT_EQ(pool.free(0), 10u);
  EXPECT_EQ(pool.free(1), 0u);
  // Page 20 lies behind page 19, but in another split.
  EXPECT_EQ(pool.SplitOf(pool.Take(0, 19, 1)), 0u);
  EXPECT_EQ(pool.SplitOf(pool.Take(2, 19, 1)), 2u);
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

TEST(DevicePagePoolTest, TheVeryLastPageHasNoNext) {
  DevicePagePool pool = Make(65, 1);
  uint32_t last = kNoPage;
  for (uint32_t i = 0; i < 65; ++i) last = pool.Take(0, last, 65 - i);
  EXPECT_EQ(last, 64u);
  pool.Give(7);
  EXPECT_EQ(pool.Take(0, 64, 1), 7u);
}

// Of runs of one class of lengths, in different words.
TEST(DevicePagePoolTest, ANewRunGoesWhereItFitsBest) {
  DevicePagePool pool = Make(256, 1);
  uint32_t last = kNoPage;
  for (uint32_t i = 0; i < 256; ++i) last = pool.Take(0, last, 256 - i);
  const auto give = [&](uint32_t first, uint32_t pages) {
    for (uint32_t i = 0; i < pages; ++i) pool.Give(first + i);
  };
  give(4, 7);
  give(70, 5);
  give(130, 6);
  give(200, 12);
  EXPECT_EQ(pool.Take(0, kNoPage, 6), 130u);
  EXPECT_EQ(pool.Take(0, kNoPage, 5), 70u);
  EXPECT_EQ(pool.Take(0, kNoPage, 7), 4u);
  // Nothing is long enough, so the longest.
  EXPECT_EQ(pool.Take(0, kNoPage, 40), 200u);
}

TEST(DevicePagePoolDeathTest, GivingTwiceStops) {
  DevicePagePool pool = Make(8, 1);
  const uint32_t page = pool.Take(0, kNoPage, 1);
  pool.Give(page);
  EXPECT_DEATH(pool.Give(page), "IsFree");
}

// Against a plain set of pages, at awkward sizes.
TEST(DevicePagePoolTest, RandomTrafficAgreesWithASet) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t round = 0; round < 300; ++round) {
    std::mt19937_64 random(seed * 1000 + round);
    const auto splits = static_cast<uint32_t>(random() % 4 + 1);
    const auto per_split = static_cast<uint32_t>(random() % 200 + 1);
    DevicePagePool pool = Make(per_split * splits, splits);
    std::vector<std::set<uint32_t>> taken(splits);
    for (int i = 0; i < 400; ++i) {
      const auto split = static_cast<uint32_t>(random() % splits);
      std::set<uint32_t>& mine = taken[split];
      auto some = mine.lower_bound(
          static_cast<uint32_t>(random() % (per_split * splits)));
      if (random() % 5 < 3 && mine.size() < per_split) {
        const uint32_t after = some == mine.end() ? kNoPage : *some;
        const auto run = static_cast<uint32_t>(1 + random() % 9);
        const uint32_t page = pool.Take(split, after, run);
        ASSERT_EQ(page / per_split, split);
        ASSERT_TRUE(mine.insert(page).second) << "page given twice";
        if (after != kNoPage && (after + 1) / per_split == split &&
            mine.count(after + 1) == 0) {
          FAIL() << "place behind page " << after << " was free, took " << page;
        }
      } else if (some != mine.end()) {
        pool.Give(*some);
        mine.erase(some);
      }
      ASSERT_EQ(pool.free(split), per_split - mine.size());
    }
    ASSERT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
    for (uint32_t page = 0; page < per_split * splits; ++page) {
      ASSERT_EQ(pool.IsFree(page), taken[page / per_split].count(page) == 0);
    }
  }
}

}  // namespace
}  // namespace paged_kv::internal
