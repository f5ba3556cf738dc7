// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is left of a cache when the device has lost its memory. The random
// traffic of device_tier_property_test.cc does the same at any moment.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "paged_kv/op_log.h"
#include "tests/paged_kv/device_script.h"

namespace paged_kv {
namespace {

DeviceLoss Lose(DeviceScript* cache) {
  auto loss = (*cache)->LoseDevice();
  EXPECT_TRUE(loss.ok()) << loss.status();
  cache->Check();
  EXPECT_EQ(cache->Device().free + cache->Device().quarantined,
            cache->Device().capacity);
  return loss.ok() ? *loss : DeviceLoss{};
}

TEST(DeviceLossTest, WithoutADeviceThereIsNothingToLose) {
  DeviceScript cache(PoolOptions(8, 4));
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->LoseDevice().status(); });
}

TEST(DeviceLossTest, AnEmptyDeviceLosesNothing) {
  DeviceScript cache(DeviceOptions(8, 4, 4));
  const SequenceId host = cache.New(Text(1, 8));
  const DeviceLoss loss = Lose(&cache);
  EXPECT_TRUE(loss.sequences.empty());
  EXPECT_EQ(loss.blocks, BlockCount(0));
  EXPECT_EQ(cache.Table(host).size(), 2u);
}

// Its K/V is in host memory, too: it goes on there.
TEST(DeviceLossTest, WhatHostMemoryHasIsIntact) {
  DeviceScript cache(DeviceOptions(8, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 8));
  const auto table = cache.Table(s);
  const DeviceLoss loss = Lose(&cache);
  EXPECT_TRUE(loss.sequences.empty());
  EXPECT_EQ(cache.Table(s), table);
  EXPECT_EQ(cache->Residency(s)->home, Tier::kHost);
  EXPECT_TRUE(cache.Export(s, Tier::kHost).ok());
  cache.Append(s, Text(1, 1, 8));
  cache.Done(cache.In({s}));
  EXPECT_TRUE(cache.Export(s, Tier::kDevice).ok());
}

// A token that was written on the device alone takes its sequence along, and
// leaves the blocks before it in the cache.
TEST(DeviceLossTest, AHolderOfALostBlockIsNamedAndFreed) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  const SequenceId kept = cache.NewOnDevice(Text(2, 8));
  const SequenceId lost = cache.NewOnDevice(Text(1, 8));
  cache.Append(lost, Text(1, 5, 8));  // a full block and a partial one
  ASSERT_EQ(cache.Hit(Text(1, 14)), 12u);
  const DeviceLoss loss = Lose(&cache);
  EXPECT_EQ(loss.sequences, std::vector<SequenceId>{lost});
  EXPECT_EQ(loss.blocks, BlockCount(2));
  EXPECT_TRUE(absl::IsNotFound(cache->Residency(lost).status()));
  EXPECT_TRUE(cache->Residency(kept).ok());
  EXPECT_EQ(cache.Hit(Text(1, 14)), 8u);
  EXPECT_EQ(cache.Pool().cached, BlockCount(2));
}

TEST(DeviceLossTest, ForksAreLostWithWhatTheyShare) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  const SequenceId parent = cache.NewOnDevice(Text(1, 8));
  cache.Append(parent, Text(1, 4, 8));
  const SequenceId child = cache.Fork(parent);
  const DeviceLoss loss = Lose(&cache);
  EXPECT_EQ(loss.sequences, (std::vector<SequenceId>{parent, child}));
  EXPECT_EQ(loss.blocks, BlockCount(1));
  EXPECT_EQ(cache.Pool().held, BlockCount(0));
}

TEST(DeviceLossTest, CachedContentThatNothingElseHasIsDropped) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  const SequenceId s = cache.NewOnDevice(Text(1, 8));
  cache.Append(s, Text(1, 4, 8));
  cache.Free(s);
  ASSERT_EQ(cache.Device().dirty, BlockCount(1));
  ASSERT_EQ(cache.Hit(Text(1, 13)), 12u);
  const DeviceLoss loss = Lose(&cache);
  EXPECT_TRUE(loss.sequences.empty());
  EXPECT_EQ(loss.blocks, BlockCount(1));
  EXPECT_EQ(cache.Hit(Text(1, 13)), 8u);
  EXPECT_EQ(cache.Pool().cached, BlockCount(2));
}

TEST(DeviceLossTest, APinOfLostContentEnds) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  const SequenceId s = cache.NewOnDevice(Text(1, 8));
  cache.Append(s, Text(1, 4, 8));
  const auto lost = cache->Pin(Text(1, 13));
  const auto kept = cache->Pin(Text(1, 9));
  ASSERT_TRUE(lost.ok() && kept.ok());
  cache.Free(s);
  const DeviceLoss loss = Lose(&cache);
  EXPECT_EQ(loss.pins, std::vector<PinId>{*lost});
  EXPECT_TRUE(absl::IsNotFound(cache->Unpin(*lost)));
  EXPECT_TRUE(cache->Unpin(*kept).ok());
}

// Whether what was on its way has arrived is not for the reset to say.
TEST(DeviceLossTest, TransfersAreReportedFirst) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  for (const bool moved : {true, false}) {
    const SequenceId s = cache.NewOnDevice(Text(1, 8));
    cache.Append(s, Text(1, 4, 8));
    const Transfers down = cache.Out({s});
    ASSERT_EQ(down.size(), 1u);
    cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                        [&] { return cache->LoseDevice().status(); });
    cache.Done(down, moved);
    const DeviceLoss loss = Lose(&cache);
    EXPECT_EQ(loss.sequences.size(), moved ? 0u : 1u);
    if (moved) cache.Free(s);
  }
}

// The pages that a step in flight names come back when it retires.
TEST(DeviceLossTest, StepsInFlightRetireAllTheSame) {
  DeviceScript cache(DeviceOptions(12, 4, 12));
  const SequenceId s = cache.NewOnDevice(Text(1, 8));
  const SequenceId t = cache.New(Text(2, 8));
  const auto on_device = cache->Append(s, Text(1, 1, 8));
  const auto on_host = cache->Append(t, Text(2, 1, 8));
  ASSERT_TRUE(on_device.ok() && on_host.ok());
  const DeviceLoss loss = Lose(&cache);
  EXPECT_EQ(loss.sequences, std::vector<SequenceId>{s});
  EXPECT_GT(cache.Device().quarantined, BlockCount(0));
  EXPECT_TRUE(cache->Retire(on_device->step).ok());
  cache.Check();
  EXPECT_TRUE(cache->Retire(on_host->step).ok());
  cache.Check();
  EXPECT_EQ(cache.Device().free, cache.Device().capacity);
  EXPECT_EQ(cache.Hit(Text(1, 13)), 8u);
  EXPECT_TRUE(cache.Export(t, Tier::kHost).ok());
}

TEST(DeviceLossTest, AReplayLosesTheSame) {
  StringOpLog log;
  KvCacheOptions options = DeviceOptions(12, 4, 12);
  options.op_log = &log;
  DeviceScript cache(options);
  const SequenceId s = cache.NewOnDevice(Text(1, 8));
  cache.Append(s, Text(1, 5, 8));
  EXPECT_EQ(Lose(&cache).sequences.size(), 1u);
  cache.New(Text(3, 10));
  const auto twin = ReplayOpLog(log.contents());
  ASSERT_TRUE(twin.ok()) << twin.status();
  EXPECT_EQ((*twin)->Fingerprint(), cache->Fingerprint());
}

}  // namespace
}  // namespace paged_kv
