// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/timing.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

TEST(QuietTimingsTest, DisturbedRepetitionsDoNotCountIfEnoughRemain) {
  QuietTimings timings(2);
  for (const double seconds : {1.0, 3.0, 2.0, 4.0}) {
    timings.Add({seconds, 2 * seconds});
  }
  timings.Add({9.0, 0.96 * 2 * 9.0});
  timings.Add({8.0, 0.97 * 2 * 8.0});
  EXPECT_EQ(timings.total(), 6u);
  EXPECT_EQ(timings.counted(), 5u);
  EXPECT_FALSE(timings.disturbed());
  EXPECT_EQ(timings.Min(), 1.0);
  EXPECT_EQ(timings.Median(), 3.0);
  EXPECT_EQ(timings.P90(), 8.0);
}

TEST(QuietTimingsTest, AllCountIfMostWereDisturbed) {
  QuietTimings few(1);  // only two are quiet
  for (const double share : {1.0, 1.0, 0.5}) few.Add({1.0, share});
  EXPECT_EQ(few.counted(), 3u);
  EXPECT_TRUE(few.disturbed());
  QuietTimings less_than_half(1);
  for (int i = 0; i < 7; ++i) less_than_half.Add({1.0, i < 3 ? 1.0 : 0.5});
  EXPECT_EQ(less_than_half.counted(), 7u);
  less_than_half.Add({1.0, 1.0});
  EXPECT_EQ(less_than_half.counted(), 4u);
}

TEST(QuietTimingsTest, MedianOfAnEvenNumberLiesBetween) {
  QuietTimings timings(1);
  for (const double seconds : {4.0, 1.0, 2.0, 8.0}) {
    timings.Add({seconds, seconds});
  }
  EXPECT_EQ(timings.Median(), 3.0);
  EXPECT_EQ(timings.P90(), 8.0);
}

TEST(QuietTimingsTest, WorkIsTimed) {
  int calls = 0;
  const Timing timing = TimeOf([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_GT(timing.wall_seconds, 0);
  EXPECT_GE(timing.cpu_seconds, 0);
}

}  // namespace
}  // namespace paged_kv::tool
