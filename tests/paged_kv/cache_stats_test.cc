// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/cache_stats.h"

#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler_stats.h"

namespace paged_kv {
namespace {

// Callers sum snapshots up, beginning with one that nobody has filled.
TEST(CacheStatsTest, ANewSnapshotCountsNothing) {
  const CacheStats stats;
  EXPECT_TRUE(stats.pools.empty());
  EXPECT_TRUE(stats.device_pools.empty());
  EXPECT_EQ(stats.sequences + stats.pins + stats.steps_in_flight, 0u);
  EXPECT_EQ(stats.steps_committed + stats.steps_retired, 0u);
  EXPECT_EQ(stats.sequences_admitted + stats.prompt_tokens + stats.hit_tokens,
            0u);
  EXPECT_EQ(stats.blocks_taken + stats.blocks_evicted + stats.blocks_copied +
                stats.unshared_chunks,
            0u);
  EXPECT_EQ(stats.uploads_started + stats.downloads_started +
                stats.transfers_failed + stats.device_evictions,
            0u);
  EXPECT_EQ(stats.events_dropped, 0u);

  const PoolStats pool;
  for (const BlockCount count : {pool.capacity, pool.held, pool.cached,
                                 pool.quarantined, pool.free, pool.peak_used}) {
    EXPECT_EQ(count, BlockCount(0));
  }
  const DevicePoolStats device;
  for (const BlockCount count :
       {device.capacity, device.free, device.seated, device.moving,
        device.quarantined, device.clean, device.dirty}) {
    EXPECT_EQ(count, BlockCount(0));
  }
}

TEST(BatchSchedulerStatsTest, ANewSnapshotCountsNothing) {
  const BatchSchedulerStats stats;
  EXPECT_EQ(stats.waiting + stats.running + stats.untaken + stats.in_flight,
            0u);
  EXPECT_EQ(stats.submitted + stats.finished + stats.cancelled + stats.failed,
            0u);
  EXPECT_EQ(stats.steps + stats.abandoned_steps + stats.computed_tokens +
                stats.recomputed_tokens + stats.output_tokens,
            0u);
  EXPECT_EQ(stats.preemptions + stats.max_preemptions + stats.stalls +
                stats.prefix_waits + stats.prefix_wait_steps +
                stats.failed_forks,
            0u);
}

}  // namespace
}  // namespace paged_kv
