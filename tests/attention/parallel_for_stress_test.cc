// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "attention/parallel_for.h"
#include "gtest/gtest.h"

namespace paged_kv::attention {
namespace {

// Plain, unsynchronised memory: the pool alone orders the accesses, which the
// thread sanitizer checks.
TEST(ParallelForStressTest, WritesOfTasksAreVisibleAfterwards) {
  // More threads than most machines have cores, so that some fall asleep.
  ThreadPool pool(8);
  std::vector<uint64_t> values(64, 0);
  for (uint64_t round = 1; round <= 3000; ++round) {
    pool.Run(values.size(), [&](size_t task, size_t) { values[task] += task; });
  }
  for (size_t t = 0; t < values.size(); ++t) EXPECT_EQ(values[t], 3000 * t);
}

TEST(ParallelForStressTest, CallersTakeTurns) {
  ThreadPool pool(2);
  std::vector<std::vector<uint64_t>> sums(3, std::vector<uint64_t>(16, 0));
  std::vector<std::thread> callers;
  for (std::vector<uint64_t>& mine : sums) {
    callers.emplace_back([&pool, &mine] {
      for (int round = 0; round < 500; ++round) {
        pool.Run(mine.size(), [&](size_t task, size_t) { ++mine[task]; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<uint64_t>& mine : sums) {
    for (const uint64_t sum : mine) EXPECT_EQ(sum, 500u);
  }
}

TEST(ParallelForStressTest, StartsAndStops) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(3);
    std::atomic<int> calls{0};
    if (i % 2 == 0) pool.Run(5, [&](size_t, size_t) { calls.fetch_add(1); });
    EXPECT_EQ(calls, i % 2 == 0 ? 5 : 0);
  }
}

}  // namespace
}  // namespace paged_kv::attention
