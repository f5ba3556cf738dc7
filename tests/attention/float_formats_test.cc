// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/float_formats.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of 16 bits by the definition of the format.
double ValueOf(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7FFF) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> 15 == 0 ? 1.0 : -1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * kInfinity
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits),
                           exponent - bias - mantissa_bits);
}

struct Format {
  const char* name;
  int exponent_bits;
  uint16_t (*encode)(float);
  float (*decode)(uint16_t);
};

class FloatFormatsTest : public ::testing::TestWithParam<Format> {};

TEST_P(FloatFormatsTest, EveryValueDecodesAndComesBack) {
  const Format& format = GetParam();
  for (uint32_t i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double want = ValueOf(bits, format.exponent_bits);
    const float got = format.decode(bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_TRUE(std::isnan(format.decode(format.encode(got)))) << i;
    } else {
      ASSERT_EQ(got, want) << i;
      ASSERT_EQ(format.encode(got), bits) << i;
    }
  }
}

TEST_P(FloatFormatsTest, RoundsToNearestAndTiesToEven) {
  const Format& format = GetParam();
  // Every pair of neighbouring finite magnitudes: their middle goes to the even
  // one, and the f32 values next to the middle to the nearer one.
  const uint16_t infinity = format.encode(kInfinity);
  for (uint16_t low = 0; low + 1 < infinity; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const double middle = (ValueOf(low, format.exponent_bits) +
                           ValueOf(high, format.exponent_bits)) /
                          2;
    const auto middle_f32 = static_cast<float>(middle);
    ASSERT_EQ(middle_f32, middle);
    const uint16_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(format.encode(middle_f32), even) << low;
    ASSERT_EQ(format.encode(std::nextafter(middle_f32, 0.0f)), low) << low;
    ASSERT_EQ(format.encode(std::nextafter(middle_f32, kInfinity)), high)
        << low;
    ASSERT_EQ(format.encode(-middle_f32), even | 0x8000) << low;
  }
}

TEST_P(FloatFormatsTest, OverflowGoesToInfinity) {
  const Format& format = GetParam();
  const uint16_t infinity = format.encode(kInfinity);
  const auto largest = static_cast<uint16_t>(infinity - 1);
  EXPECT_EQ(format.decode(infinity), kInfinity);
  EXPECT_EQ(format.encode(std::numeric_limits<float>::max()), infinity);
  // Half a last place beyond the largest value is a tie, and the even
  // neighbour is infinity.
  const double step = ValueOf(largest, format.exponent_bits) -
                      ValueOf(largest - 1, format.exponent_bits);
  const auto tie =
      static_cast<float>(ValueOf(largest, format.exponent_bits) + step / 2);
  EXPECT_EQ(format.encode(tie), infinity);
  EXPECT_EQ(format.encode(std::nextafter(tie, 0.0f)), largest);
}

TEST_P(FloatFormatsTest, KeepsNanAndItsSign) {
  const Format& format = GetParam();
  // Quiet and signalling ones, payload only in bits that do not fit, and one
  // that rounding would carry into the sign.
  for (const uint32_t bits : {0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu,
                              0xFF800001u, 0xFFFFFFFFu, 0x7FA5A5A5u}) {
    const uint16_t encoded = format.encode(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(ValueOf(encoded, format.exponent_bits))) << bits;
    EXPECT_EQ(encoded >> 15, bits >> 31) << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, FloatFormatsTest,
                         ::testing::Values(Format{"f16", 5, F32ToF16, F16ToF32},
                                           Format{"bf16", 8, F32ToBf16,
                                                  Bf16ToF32}),
                         [](const auto& format) { return format.param.name; });

}  // namespace
}  // namespace paged_kv::attention
