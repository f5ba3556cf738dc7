// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/float_formats.h"

#include <bit>

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

}  // namespace paged_kv::attention
