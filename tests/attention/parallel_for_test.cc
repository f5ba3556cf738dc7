// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/parallel_for.h"

#include <atomic>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::attention {
namespace {

void ExpectEachTaskOnce(ParallelFor& parallel, size_t num_tasks) {
  std::vector<std::atomic<int>> calls(num_tasks);
  std::atomic<bool> bad_worker{false};
  parallel.Run(num_tasks, [&](size_t task, size_t worker) {
    calls[task].fetch_add(1);
    if (worker >= parallel.num_workers()) bad_worker = true;
  });
  EXPECT_FALSE(bad_worker);
  for (size_t t = 0; t < num_tasks; ++t) EXPECT_EQ(calls[t], 1) << t;
}

TEST(ParallelForTest, EveryTaskRunsOnce) {
  SerialFor serial;
  ExpectEachTaskOnce(serial, 5);
  for (const size_t workers : {1, 2, 3, 8}) {
    ThreadPool pool(workers);
    EXPECT_EQ(pool.num_workers(), workers);
    for (const size_t tasks : {0, 1, 2, 7, 1000}) {
      ExpectEachTaskOnce(pool, tasks);
    }
  }
}

TEST(ParallelForTest, DefaultHasAtLeastOneWorker) {
  ThreadPool pool;
  EXPECT_GE(pool.num_workers(), 1u);
  ExpectEachTaskOnce(pool, 10);
}

TEST(ParallelForTest, WorkersDoNotOverlapWithThemselves) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> inside(pool.num_workers());
  std::atomic<bool> overlapped{false};
  pool.Run(2000, [&](size_t, size_t worker) {
    if (inside[worker].fetch_add(1) != 0) overlapped = true;
    inside[worker].fetch_sub(1);
  });
  EXPECT_FALSE(overlapped);
}

TEST(ParallelForTest, NestedRunIsSerial) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  pool.Run(4, [&](size_t, size_t) {
    pool.Run(3, [&](size_t, size_t worker) {
      EXPECT_EQ(worker, 0u);
      calls.fetch_add(1);
    });
  });
  EXPECT_EQ(calls, 12);
}

}  // namespace
}  // namespace paged_kv::attention
