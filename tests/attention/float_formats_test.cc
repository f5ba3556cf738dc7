// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/float_formats.h"

#include <algorithm>
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

// The value of an e4m3 code by the definition of the format.
double E4m3Value(uint32_t code) {
  const double sign = code < 0x80 ? 1.0 : -1.0;
  const int magnitude = static_cast<int>(code & 0x7F);
  const int exponent = magnitude / 8;
  const int mantissa = magnitude % 8;
  if (magnitude == 0x7F) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - 7 - 3);
  return sign * std::ldexp(8 + mantissa, exponent - 7 - 3);
}

double Int8Value(uint32_t code) {
  return code < 0x80 ? code : static_cast<double>(code) - 256;
}

// The code of the negative of a code's value.
uint8_t NegativeE4m3(uint32_t code) {
  return static_cast<uint8_t>(code | 0x80);
}
uint8_t NegativeInt8(uint32_t code) { return static_cast<uint8_t>(256 - code); }

struct ByteFormat {
  const char* name;
  uint8_t largest;  // code
  double (*value)(uint32_t);
  uint8_t (*encode)(float);
  float (*decode)(uint8_t);
  uint8_t (*negative)(uint32_t);
};

class ByteFormatsTest : public ::testing::TestWithParam<ByteFormat> {
 protected:
  // The nearest of all finite magnitudes, the even code of two.
  uint32_t Nearest(float value) const {
    const double largest = GetParam().value(GetParam().largest);
    const double magnitude = std::min(std::abs(double{value}), largest + 1);
    uint32_t best = 0;
    for (uint32_t code = 1; code <= GetParam().largest; ++code) {
      const double gain = std::abs(GetParam().value(best) - magnitude) -
                          std::abs(GetParam().value(code) - magnitude);
      if (gain > 0 || (gain == 0 && code % 2 == 0)) best = code;
    }
    return std::signbit(value) ? GetParam().negative(best) : best;
  }
};

TEST_P(ByteFormatsTest, EveryCodeDecodesAndComesBack) {
  const ByteFormat& format = GetParam();
  for (uint32_t i = 0; i <= 0xFF; ++i) {
    const auto code = static_cast<uint8_t>(i);
    const double want = format.value(i);
    const float got = format.decode(code);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(got, want) << i;
    }
    // What is read, but never written, is beyond the largest.
    const bool is_beyond = std::abs(want) > format.value(format.largest);
    ASSERT_EQ(format.encode(got),
              is_beyond ? format.negative(format.largest) : code)
        << i;
  }
}

TEST_P(ByteFormatsTest, RoundsToTheNearestAndTiesToEven) {
  const ByteFormat& format = GetParam();
  std::vector<float> values;
  for (uint32_t code = 0; code < format.largest; ++code) {
    const auto middle =
        static_cast<float>((format.value(code) + format.value(code + 1)) / 2);
    values.insert(values.end(), {middle, std::nextafter(middle, 0.0f),
                                 std::nextafter(middle, kInfinity)});
  }
  // Any bits, and uniform ones.
  uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525 + 1013904223;
    const auto any = std::bit_cast<float>(state);
    if (!std::isnan(any)) values.push_back(any);
    values.push_back(static_cast<float>(state) * 0x1p-32f *
                     static_cast<float>(format.value(format.largest)));
  }
  for (const float value : values) {
    ASSERT_EQ(format.encode(value), Nearest(value)) << value;
    ASSERT_EQ(format.encode(-value), Nearest(-value)) << value;
  }
}

TEST_P(ByteFormatsTest, SaturatesBeyondTheLargest) {
  const ByteFormat& format = GetParam();
  const auto largest = static_cast<float>(format.value(format.largest));
  for (const float value :
       {largest, std::nextafter(largest, kInfinity), largest * 1.01f,
        largest * 1.1f, largest * 2, largest * 1000,
        std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(format.encode(value), format.largest) << value;
    EXPECT_EQ(format.encode(-value), format.negative(format.largest)) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, ByteFormatsTest,
    ::testing::Values(ByteFormat{"e4m3", 0x7E, E4m3Value, F32ToE4m3, E4m3ToF32,
                                 NegativeE4m3},
                      ByteFormat{"int8", 0x7F, Int8Value, F32ToInt8, Int8ToF32,
                                 NegativeInt8}),
    [](const auto& format) { return format.param.name; });

TEST(EightBitFormatsTest, NanBecomesNanOrZero) {
  for (const uint32_t bits : {0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu,
                              0xFF800001u, 0xFFFFFFFFu, 0x7FA5A5A5u}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_EQ(F32ToE4m3(nan), bits >> 31 == 0 ? 0x7F : 0xFF) << bits;
    EXPECT_EQ(F32ToInt8(nan), 0) << bits;
  }
}

TEST(EightBitFormatsTest, ScalesAreNormalNumbers) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const DType dtype : {DType::kFp8E4M3, DType::kInt8}) {
    const float code = dtype == DType::kInt8 ? 127.0f : 448.0f;
    EXPECT_EQ(QuantizationScale(dtype, 0.0f), 1.0f);
    EXPECT_EQ(QuantizationScale(dtype, code), 1.0f);
    EXPECT_EQ(QuantizationScale(dtype, 3.0f), 3.0f / code);
    EXPECT_EQ(QuantizationScale(dtype, kLargest), kLargest / code);
    EXPECT_TRUE(std::isnormal(1.0f / (kLargest / code)));
    for (const float tiny : {0x1p-149f, 0x1p-127f, code * 0x1p-127f}) {
      EXPECT_EQ(QuantizationScale(dtype, tiny), 0x1p-126f);
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention
