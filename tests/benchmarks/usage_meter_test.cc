// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/usage_meter.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

using When = UsageMeter::When;

UsageSample Sample(uint64_t live, uint64_t tail, uint64_t cached, uint64_t free,
                   uint32_t running, uint32_t waiting) {
  UsageSample sample;
  sample.slots.live = live;
  sample.slots.tail = tail;
  sample.slots.cached = cached;
  sample.slots.free = free;
  sample.running = running;
  sample.waiting = waiting;
  return sample;
}

TEST(UsageMeterTest, WeighsByTime) {
  UsageMeter meter(100);
  ASSERT_TRUE(meter.Add(Sample(30, 10, 20, 40, 2, 0), absl::Seconds(1)).ok());
  ASSERT_TRUE(meter.Add(Sample(60, 20, 0, 20, 5, 3), absl::Seconds(3)).ok());
  // 30 + 180 live of 40 + 240 allocated slot-seconds.
  EXPECT_DOUBLE_EQ(meter.EffectiveUtilisation(), 210.0 / 280);
  EXPECT_DOUBLE_EQ(meter.SharesOfAllocated().tail, 70.0 / 280);
  EXPECT_EQ(meter.SharesOfAllocated().cached, 0);
  EXPECT_DOUBLE_EQ(meter.SharesOfCapacity().cached, 20.0 / 400);
  EXPECT_DOUBLE_EQ(meter.SharesOfCapacity().free, 100.0 / 400);
  EXPECT_DOUBLE_EQ(meter.MeanRunning(), 17.0 / 4);
  EXPECT_DOUBLE_EQ(meter.MeanRunning(When::kUnderLoad), 5);
  EXPECT_DOUBLE_EQ(meter.SharesOfCapacity(When::kUnderLoad).free, 0.2);
  EXPECT_EQ(meter.peak_running(), 5u);
  EXPECT_EQ(meter.peak_allocated(), 80u);
  EXPECT_EQ(meter.steps(), 2u);
}

TEST(UsageMeterTest, RefusesStatesThatDoNotAddUp) {
  UsageMeter meter(100);
  for (const uint64_t free : {39u, 41u}) {
    const absl::Status status =
        meter.Add(Sample(30, 10, 20, free, 1, 0), absl::Seconds(1));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  }
  EXPECT_EQ(meter.steps(), 0u);
}

TEST(UsageMeterTest, NothingIsNoDivisionByZero) {
  UsageMeter meter(100);
  EXPECT_EQ(meter.EffectiveUtilisation(), 0);
  EXPECT_EQ(meter.MeanRunning(When::kUnderLoad), 0);
  EXPECT_EQ(meter.SharesOfCapacity().free, 0);
}

TEST(UsageMeterTest, KeepsFewSamplesInOrder) {
  UsageMeter meter(1000000);
  for (uint64_t i = 0; i < 100000; ++i) {
    UsageSample sample = Sample(i, 0, 0, 1000000 - i, 1, 0);
    sample.time = absl::Seconds(static_cast<int64_t>(i));
    ASSERT_TRUE(meter.Add(sample, absl::Seconds(1)).ok());
  }
  const auto& samples = meter.samples();
  EXPECT_LE(samples.size(), 1024u);
  EXPECT_GE(samples.size(), 400u);
  const uint64_t spacing = samples[1].slots.live;
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].slots.live, i * spacing);
  }
}

}  // namespace
}  // namespace paged_kv::tool
