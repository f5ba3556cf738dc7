// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

// The standard fixes this value (C++20, [rand.predef]): what we build on is
// the same with every library.
TEST(RandomTest, EngineIsTheStandardOne) {
  std::mt19937_64 engine;
  engine.discard(9999);
  EXPECT_EQ(engine(), 9981545732273789042u);
}

TEST(RandomTest, BelowIsUniform) {
  Random random(7);
  std::array<int, 10> counts{};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) ++counts[random.Below(10)];
  // Chi-square with 9 degrees of freedom: above 27.9 in 0.1 % of all cases.
  double chi_square = 0;
  for (const int count : counts) {
    const double off = count - kDraws / 10.0;
    chi_square += off * off / (kDraws / 10.0);
  }
  EXPECT_LT(chi_square, 27.9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomTest, ExponentialHasItsMomentsAndTail) {
  Random random(11);
  constexpr int kDraws = 200000;
  double sum = 0, sum_of_squares = 0;
  int above_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = std::ldexp(static_cast<double>(random.Exponential()), -32);
    sum += x;
    sum_of_squares += x * x;
    if (x > 2) ++above_two;
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.01);
  EXPECT_NEAR(sum_of_squares / kDraws, 2.0, 0.05);
  EXPECT_NEAR(static_cast<double>(above_two) / kDraws, std::exp(-2.0), 0.003);
}

TEST(RandomTest, QuantilesAreMet) {
  constexpr std::array<Quantile, 4> kQuantiles = {
      {{0, 5}, {250, 5}, {500, 100}, {1000, 300}}};
  Random random(3);
  constexpr int kDraws = 100000;
  int at_five = 0, below_hundred = 0, below_two_hundred = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t x = random.FromQuantiles(kQuantiles);
    ASSERT_GE(x, 5u);
    ASSERT_LE(x, 300u);
    if (x == 5) ++at_five;
    if (x < 100) ++below_hundred;
    if (x < 200) ++below_two_hundred;
  }
  // 5 also gets its share of the linear part: 1/95 of a quarter.
  EXPECT_NEAR(at_five, kDraws * (0.25 + 0.25 / 95), 600);
  EXPECT_NEAR(below_hundred, kDraws * 0.5, 600);
  EXPECT_NEAR(below_two_hundred, kDraws * 0.75, 600);
}

// Pins the transforms: these numbers must never change, on any platform.
TEST(RandomTest, SameNumbersEverywhere) {
  Random random(1);
  std::vector<uint64_t> seen;
  for (int i = 0; i < 3; ++i) seen.push_back(random.Bits());
  for (int i = 0; i < 3; ++i) seen.push_back(random.Below(1000));
  for (int i = 0; i < 3; ++i) seen.push_back(random.Exponential());
  EXPECT_EQ(seen,
            (std::vector<uint64_t>{574995807, 585863760, 1937953255, 21, 350,
                                   911, 13957689900, 3449873734, 3216890911}));
}

}  // namespace
}  // namespace paged_kv::tool
