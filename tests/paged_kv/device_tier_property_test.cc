// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random traffic on caches with a device tier, against an engine and a card
// whose memory is numbers.

#include <cstdint>
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/device_world.h"
#include "tests/support/sanitized.h"

namespace paged_kv::testing {
namespace {

LayerGroup Group(uint32_t block_tokens, uint32_t window = 0, uint32_t sinks = 0,
                 uint32_t layers = 1) {
  LayerGroup group;
  group.shape.layers = layers;
  group.shape.block_tokens = block_tokens;
  group.window = window;
  group.sink_tokens = sinks;
  return group;
}

KvCacheOptions Options(uint32_t kind) {
  KvCacheOptions options;
  options.host_blocks = BlockCount(24);
  options.max_sequences = 8;
  options.max_tokens_per_sequence = 64;
  options.hash_seed = 1;
  options.device.pages = BlockCount(12);
  switch (kind) {
    case 0:
      options.groups = {Group(4)};
      break;
    case 1:  // splits, steps one after the other
      options.groups = {Group(2)};
      options.device.pages = BlockCount(18);
      options.device.splits = 3;
      options.device.watermark_pages = BlockCount(1);
      options.max_steps_in_flight = 1;
      break;
    case 2:  // two pools, one with a window
      options.groups = {Group(4), Group(2, 7, 3, 2)};
      options.max_steps_in_flight = 3;
      break;
    case 3:  // two groups in one pool
      options.groups = {Group(4), Group(4)};
      options.device.splits = 2;
      break;
    case 4:  // many evictions in both tiers
      options.groups = {Group(1)};
      options.host_blocks = BlockCount(40);
      options.device.pages = BlockCount(34);
      options.device.splits = 2;
      break;
    default:  // nothing is shared
      options.groups = {Group(3)};
      options.prefix_caching = false;
      break;
  }
  return options;
}

class DeviceTierPropertyTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(DeviceTierPropertyTest, NoNumberIsEverWrong) {
  const uint64_t seed = TestSeed(1);
  constexpr uint64_t kRuns = kSanitized ? 60 : 200;
  DeviceWorld::Counts all;
  for (uint64_t run = 0; run < kRuns; ++run) {
    const uint64_t run_seed = seed * 1000003 + run * 8 + GetParam();
    DeviceWorld world(Options(GetParam()), run_seed);
    // Short runs find short counterexamples; long ones fill the pools.
    const int operations = run % 4 == 0 ? 400 : 80;
    int done = 0;
    while (done < operations && world.Step()) ++done;
    world.Finish();
    ASSERT_TRUE(world.violation().empty())
        << world.violation() << "\nseed " << run_seed << ", operation " << done;
    all.steps_on_host += world.counts().steps_on_host;
    all.steps_on_device += world.counts().steps_on_device;
    all.uploads += world.counts().uploads;
    all.downloads += world.counts().downloads;
    all.failed += world.counts().failed;
    all.copies_on_device += world.counts().copies_on_device;
    all.refused += world.counts().refused;
    all.handed_off += world.counts().handed_off;
    all.fetched_for_admissions += world.counts().fetched_for_admissions;
    all.resets += world.counts().resets;
    all.lost_sequences += world.counts().lost_sequences;
    all.kept_sequences += world.counts().kept_sequences;
  }
  std::printf(
      "steps %llu host, %llu device; transfers %llu up, %llu down, %llu "
      "failed; %llu copies on the device, %llu handed off, %llu fetched, %llu "
      "calls refused; %llu times the device was lost, with %llu of %llu "
      "sequences\n",
      static_cast<unsigned long long>(all.steps_on_host),
      static_cast<unsigned long long>(all.steps_on_device),
      static_cast<unsigned long long>(all.uploads),
      static_cast<unsigned long long>(all.downloads),
      static_cast<unsigned long long>(all.failed),
      static_cast<unsigned long long>(all.copies_on_device),
      static_cast<unsigned long long>(all.handed_off),
      static_cast<unsigned long long>(all.fetched_for_admissions),
      static_cast<unsigned long long>(all.refused),
      static_cast<unsigned long long>(all.resets),
      static_cast<unsigned long long>(all.lost_sequences),
      static_cast<unsigned long long>(all.lost_sequences + all.kept_sequences));
  // The traffic reaches what it is meant to test.
  EXPECT_GT(all.steps_on_host, kRuns);
  EXPECT_GT(all.steps_on_device, kRuns);
  EXPECT_GT(all.uploads, kRuns);
  EXPECT_GT(all.downloads, kRuns / 4);
  EXPECT_GT(all.failed, 0u);
  EXPECT_GT(all.handed_off, 0u);
  EXPECT_GT(all.lost_sequences, 0u);
  EXPECT_GT(all.kept_sequences, kRuns / 20);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, DeviceTierPropertyTest,
                         ::testing::Range(0u, 6u));

}  // namespace
}  // namespace paged_kv::testing
