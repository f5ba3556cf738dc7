// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/kernel_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

bool Subnormal(float value) { return std::fpclassify(value) == FP_SUBNORMAL; }

TEST(KernelArithmeticTest, EveryBf16IsItselfOr0) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = FloatOfBits(bits << 16);
    const float read = Bf16(bits);
    if (std::fabs(value) < std::ldexp(1.0f, -55)) {
      ASSERT_EQ(BitsOfFloat(read), 0u) << bits;
    } else {
      ASSERT_EQ(BitsOfFloat(read), bits << 16);
    }
  }
}

TEST(KernelArithmeticTest, EveryInt8IsItself) {
  for (int value = -128; value < 128; ++value) {
    EXPECT_EQ(Int8(static_cast<uint8_t>(value)), static_cast<float>(value));
  }
}

TEST(KernelArithmeticTest, PairsAreInTheOrderOfMemory) {
  const uint32_t bytes = 0x80017FFE;  // -2, 127, 1, -128
  EXPECT_EQ(PairOf(bytes, true, false).first, -2.0f);
  EXPECT_EQ(PairOf(bytes, true, false).second, 127.0f);
  EXPECT_EQ(PairOf(bytes, true, true).first, 1.0f);
  EXPECT_EQ(PairOf(bytes, true, true).second, -128.0f);
  const uint32_t halves = 0xC0003F80;  // 1, -2
  for (const bool upper : {false, true}) {
    EXPECT_EQ(PairOf(halves, false, upper).first, 1.0f);
    EXPECT_EQ(PairOf(halves, false, upper).second, -2.0f);
  }
}

TEST(KernelArithmeticTest, SmallScalesAre0) {
  EXPECT_EQ(KvScale(BitsOfFloat(std::ldexp(1.0f, -60))), std::ldexp(1.0f, -60));
  EXPECT_EQ(KvScale(BitsOfFloat(std::ldexp(1.99f, -61))), 0.0f);
  EXPECT_EQ(KvScale(1), 0.0f);
  EXPECT_TRUE(std::isnan(KvScale(BitsOfFloat(kNan))));
}

TEST(KernelArithmeticTest, ScaleDownIsExactOr0) {
  std::mt19937_64 random(TestSeed(1));
  for (int i = 0; i < 200000; ++i) {
    const float value = FloatOfBits(static_cast<uint32_t>(random()));
    const float shift = -static_cast<float>(random() % 140);
    const float scaled = ScaleDown(value, shift);
    if (!std::isfinite(value)) {
      ASSERT_EQ(BitsOfFloat(scaled), BitsOfFloat(value));
    } else if (shift <= -128.0f) {
      ASSERT_EQ(BitsOfFloat(scaled), 0u);
    } else {
      const float exact = std::ldexp(value, static_cast<int>(shift));
      const bool small = std::fabs(exact) < std::ldexp(1.0f, -102);
      ASSERT_EQ(BitsOfFloat(scaled), small ? 0u : BitsOfFloat(exact))
          << value << " by " << shift;
    }
  }
  EXPECT_EQ(ScaleDown(1.0f, -kInfinity), 0.0f);
  EXPECT_EQ(ScaleDown(1.0f, kNan), 0.0f);
  for (const float shift :
       {0.0f, -1.0f, -127.0f, -128.0f, -200.0f, -kInfinity, kNan}) {
    EXPECT_TRUE(std::isnan(ScaleDown(kNan, shift))) << shift;
    EXPECT_EQ(ScaleDown(kInfinity, shift), kInfinity) << shift;
    EXPECT_EQ(ScaleDown(-kInfinity, shift), -kInfinity) << shift;
  }
}

TEST(KernelArithmeticTest, RoundUpIsCeil) {
  std::mt19937_64 random(TestSeed(2));
  for (int i = 0; i < 200000; ++i) {
    const float value = FloatOfBits(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(RoundUp(value), std::ceil(value)) << value;
  }
  for (const float value : {0.0f, -0.5f, 0.5f, 1.0f, -1.0f, 8388607.5f,
                            -8388607.5f, kInfinity, -kInfinity}) {
    EXPECT_EQ(RoundUp(value), std::ceil(value));
  }
}

TEST(KernelArithmeticTest, Exp2IsCloseAndNeverSubnormal) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    const float x = -39.0f * static_cast<float>(i) / 400000.0f;
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::fmax(worst, std::fabs(Exp2(x) / exact - 1));
  }
  EXPECT_LT(worst, 4e-7);
  EXPECT_EQ(Exp2(0.0f), 1.0f);
  EXPECT_EQ(Exp2(-1.0f), 0.5f);
  EXPECT_EQ(Exp2(-39.5f), 0.0f);
  EXPECT_EQ(Exp2(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(Exp2(kNan)));
  // The smallest weight leaves room for a product with the smallest element.
  EXPECT_GE(Exp2(-39.0f), std::ldexp(1.0f, -40));
}

TEST(KernelArithmeticTest, Log2IsClose) {
  double worst = 0;
  std::mt19937_64 random(TestSeed(3));
  std::uniform_real_distribution<float> uniform(-1.0f, 24.0f);
  for (int i = 0; i < 400000; ++i) {
    const float x = std::exp2(uniform(random));
    const double exact = std::log2(static_cast<double>(x));
    worst = std::fmax(worst, std::fabs(Log2(x) - exact) -
                                 std::fabs(exact) * std::ldexp(1.0, -24));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(Log2(1.0f), 0.0f);
  EXPECT_EQ(Log2(1024.0f), 10.0f);
  EXPECT_EQ(Log2(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log2(kNan)));
}

// The promise of kernel_arithmetic.h, on the values that come closest to
// breaking it.
TEST(KernelArithmeticTest, NothingIsEverSubnormal) {
  std::mt19937_64 random(TestSeed(4));
  // bf16 of exponents around 2^-55, either sign.
  const auto element = [&] {
    const uint32_t exponent = 127 - 57 + static_cast<uint32_t>(random() % 4);
    const uint32_t bits = static_cast<uint32_t>(random() % 128) |
                          exponent << 7 |
                          static_cast<uint32_t>(random() % 2) << 15;
    return Bf16(bits);
  };
  for (int round = 0; round < 20000; ++round) {
    float score = 0.0f;
    float output = 0.0f;
    for (int i = 0; i < 32; ++i) {
      const float product = element() * element();
      ASSERT_FALSE(Subnormal(product));
      score = score + product;
      ASSERT_FALSE(Subnormal(score));
      output = ScaleDown(output, -static_cast<float>(random() % 3));
      ASSERT_FALSE(Subnormal(output));
      const float weight =
          Exp2(-36.0f - static_cast<float>(random() % 64) / 16);
      const float weighted = weight * element();
      ASSERT_FALSE(Subnormal(weighted));
      output = output + weighted;
      ASSERT_FALSE(Subnormal(output));
    }
  }
}

TEST(KernelArithmeticTest, BurstsEndAt4KiB) {
  for (uint64_t beat = 0; beat < 200; ++beat) {
    for (uint64_t left = 1; left < 200; ++left) {
      const uint64_t burst = NextBurst(beat, left);
      ASSERT_GE(burst, 1u);
      ASSERT_LE(burst, left);
      ASSERT_LE(burst, kBurstBeats);
      ASSERT_EQ(beat * kBeatBytes / 4096,
                ((beat + burst) * kBeatBytes - 1) / 4096);
      // As long as it may be.
      ASSERT_TRUE(burst == left || (beat + burst) % kBurstBeats == 0);
    }
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma
