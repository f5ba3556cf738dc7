// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/float_formats.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "paged_kv/check.h"

namespace paged_kv::attention {
namespace {

constexpr uint32_t kF32SignMask = 0x80000000u;
constexpr uint32_t kF32Infinity = 0x7F800000u;

bool IsNan(uint32_t f32_bits) {
  return (f32_bits & ~kF32SignMask) > kF32Infinity;
}

// Drops the low `bits` bits of `value`, rounding to nearest, ties to even.
uint32_t ShiftRightRounded(uint32_t value, uint32_t bits) {
  const uint32_t half = 1u << (bits - 1);
  const uint32_t odd = (value >> bits) & 1;
  return (value + half - 1 + odd) >> bits;
}

}  // namespace

uint16_t F32ToBf16(float value) {
  constexpr uint32_t kQuietBit = 0x40;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (IsNan(bits)) return static_cast<uint16_t>((bits >> 16) | kQuietBit);
  return static_cast<uint16_t>(ShiftRightRounded(bits, 16));
}

uint16_t F32ToF16(float value) {
  constexpr uint32_t kQuietBit = 0x200;
  constexpr uint32_t kInfinity = 0x7C00;
  constexpr uint32_t kDroppedBits = 23 - 10;
  constexpr uint32_t kBiasChange = (127 - 15) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kF32SignMask) >> 16;
  const uint32_t magnitude = bits & ~kF32SignMask;

  uint32_t result;
  if (IsNan(bits)) {
    result = kInfinity | kQuietBit | ((magnitude >> kDroppedBits) & 0x3FF);
  } else if (magnitude >= std::bit_cast<uint32_t>(65536.0f)) {
    result = kInfinity;
  } else if (magnitude >= std::bit_cast<uint32_t>(0x1p-14f)) {
    // Normal. A carry out of the mantissa lands in the exponent, as it should,
    // up to infinity.
    result = ShiftRightRounded(magnitude - kBiasChange, kDroppedBits);
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-25f)) {
    result = 0;
  } else {
    // Subnormal: a whole number of 2^-24.
    const uint32_t exponent = magnitude >> 23;
    const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    result = ShiftRightRounded(mantissa, 127 - 1 - exponent);
  }
  return static_cast<uint16_t>(sign | result);
}

float Bf16ToF32(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

float F16ToF32(uint16_t bits) {
  const uint32_t sign = (uint32_t{bits} & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) {  // infinity or NaN
    return std::bit_cast<float>(sign | kF32Infinity | (mantissa << 13));
  }
  if (exponent == 0) {  // zero or subnormal
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) |
                              (mantissa << 13));
}

uint8_t F32ToE4m3(float value) {
  constexpr uint32_t kNan = 0x7F;
  constexpr uint32_t kLargest = 0x7E;
  constexpr uint32_t kDroppedBits = 23 - 3;
  constexpr uint32_t kBiasChange = (127 - 7) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kF32SignMask) >> 24;
  const uint32_t magnitude = bits & ~kF32SignMask;

  uint32_t result;
  if (IsNan(bits)) {
    result = kNan;
  } else if (magnitude >= std::bit_cast<uint32_t>(0x1p-6f)) {
    // Normal; a carry out of the mantissa lands in the exponent.
    result = std::min(kLargest,
                      ShiftRightRounded(magnitude - kBiasChange, kDroppedBits));
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-10f)) {
    result = 0;
  } else {
    // Subnormal: a whole number of 2^-9.
    const uint32_t exponent = magnitude >> 23;
    const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    result = ShiftRightRounded(mantissa, 127 + 23 - 9 - exponent);
  }
  return static_cast<uint8_t>(sign | result);
}

float E4m3ToF32(uint8_t bits) {
  const uint32_t sign = (uint32_t{bits} & 0x80) << 24;
  const uint32_t magnitude = bits & 0x7Fu;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (magnitude < 8) {  // zero or subnormal
    const float value = static_cast<float>(magnitude) * 0x1p-9f;
    return sign == 0 ? value : -value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + ((127 - 7) << 23)));
}

uint8_t F32ToInt8(float value) {
  constexpr float kLargest = 127.0f;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (IsNan(bits)) return 0;
  const float magnitude =
      std::min(kLargest, std::bit_cast<float>(bits & ~kF32SignMask));
  // 2^23 has a last place of 1, so the sum is rounded to a whole number.
  const uint32_t rounded = std::bit_cast<uint32_t>(magnitude + 0x1p23f) & 0xFF;
  const bool is_negative = (bits & kF32SignMask) != 0;
  return static_cast<uint8_t>(is_negative ? 0 - rounded : rounded);
}

float Int8ToF32(uint8_t bits) { return static_cast<int8_t>(bits); }

float QuantizationScale(DType dtype, float largest) {
  PAGED_KV_CHECK(HasScales(dtype));
  if (largest == 0.0f) return 1.0f;
  const float code = dtype == DType::kFp8E4M3 ? 448.0f : 127.0f;
  return std::max(largest / code, std::numeric_limits<float>::min());
}

}  // namespace paged_kv::attention
