// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of paged_decode, in an order and with functions of our own so
// that every build gives the same bits. Device code.
//
// Floating-point cores of FPGAs have no subnormal numbers (AMD PG060: they are
// read, and given back, as zero). So that a card and a host agree all the same,
// none ever occurs: bf16 elements below 2^-55 count as 0, weights below 2^-40
// are 0, and what is scaled down below 2^-102 becomes 0. Then every product and
// every sum is a multiple of 2^-126, hence 0 or a normal number:
//   q * k: each a multiple of 2^-62, the product, exact in 24 bits, of 2^-124;
//   p * v: p >= 2^-40 has its last bit at 2^-64 or above, v at 2^-62; 2^-126;
//   accumulators: at least 2^-102, so the last bit of 24 is 2^-126 or above.
// Of int8, elements are integers, and scales below 2^-60 count as 0:
//   q * k: each a multiple of 2^-62;
//   factor of a score: a product of scales, 0 below 2^-60; times it, 2^-122;
//   p * scale >= 2^-100 has its last bit at 2^-123 or above; times v likewise.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARITHMETIC_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARITHMETIC_H_

#include <cstdint>

#include "fpga_dma/kernels/beat.h"

namespace paged_kv::fpga_dma {

inline constexpr uint32_t kExponentBias = 127;
inline constexpr uint32_t kNoExponent = 255;  // infinity and NaN
inline constexpr uint32_t kNegativeInfinityBits = 0xFF800000u;
inline constexpr uint32_t kNanBits = 0x7FC00000u;
inline constexpr float kLog2E = 1.44269502f;  // log2(e), rounded to f32
inline constexpr float kLn2 = 0.693147182f;   // ln(2), rounded to f32

inline uint32_t ExponentField(uint32_t bits) {
#pragma HLS inline
  return (bits >> 23) & 0xFFu;
}

// `value`, or 0 if its magnitude is below 2^lowest.
inline float ZeroBelow(float value, int lowest) {
#pragma HLS inline
  const uint32_t bits = BitsOfFloat(value);
  const int exponent = static_cast<int>(ExponentField(bits));
  const bool small = exponent < static_cast<int>(kExponentBias) + lowest;
  return FloatOfBits(small ? 0 : bits);
}

// The bf16 in the low 16 bits; 0 below 2^-55.
inline float Bf16(uint32_t bits) {
#pragma HLS inline
  return ZeroBelow(FloatOfBits(bits << 16), -55);
}

// The int8 in the low 8 bits.
inline float Int8(uint32_t bits) {
#pragma HLS inline
  return static_cast<float>(static_cast<int8_t>(bits & 0xFFu));
}

// Two neighbouring elements: all of `word` is two of bf16; of int8, its lower
// or its upper half.
struct ElementPair {
  float first;
  float second;
};
inline ElementPair PairOf(uint32_t word, bool int8, bool upper) {
#pragma HLS inline
  const uint32_t half = upper ? word >> 16 : word & 0xFFFFu;
  ElementPair pair;
  pair.first = int8 ? Int8(half) : Bf16(word & 0xFFFFu);
  pair.second = int8 ? Int8(half >> 8) : Bf16(word >> 16);
  return pair;
}

// A scale of int8; 0 below 2^-60.
inline float KvScale(uint32_t bits) {
#pragma HLS inline
  return ZeroBelow(FloatOfBits(bits), -60);
}

// value * 2^shift for an integer `shift` <= 0, exactly, or 0 below 2^-102 and
// for a `shift` of -infinity or NaN (there was no finite maximum before).
// Infinities and NaN stay what they are, whatever the `shift`: a later tile
// must not hide them. An adder for exponents, where a multiplier would be
// wasted.
inline float ScaleDown(float value, float shift) {
#pragma HLS inline
  const uint32_t bits = BitsOfFloat(value);
  const int exponent = static_cast<int>(ExponentField(bits));
  if (exponent == static_cast<int>(kNoExponent)) return value;
  if (!(shift > -128.0f)) return 0.0f;
  const int scaled = exponent + static_cast<int>(shift);
  const uint32_t moved =
      (bits & 0x807FFFFFu) | (static_cast<uint32_t>(scaled & 0xFF) << 23);
  const bool small = scaled < static_cast<int>(kExponentBias) - 102;
  return FloatOfBits(small ? 0 : moved);
}

// The smallest integer that is not below `value`.
inline float RoundUp(float value) {
#pragma HLS inline
  // From 2^23 on every float is an integer; so are infinities, for us.
  if (!(value > -8388608.0f && value < 8388608.0f)) return value;
  const float truncated = static_cast<float>(static_cast<int32_t>(value));
  return truncated < value ? truncated + 1.0f : truncated;
}

// 2^value for value <= 0; 0 below 2^-39; NaN for NaN. Error below 4e-7 of the
// result. The polynomial, for (-1, 0], interpolates at Chebyshev nodes, its
// constant rounded to 1 so that 2^0 is 1.
inline float Exp2(float value) {
#pragma HLS inline
  if (value < -39.0f) return 0.0f;
  if (value != value) return value;
  const int32_t whole = static_cast<int32_t>(value);  // towards 0
  const float part = value - static_cast<float>(whole);
  float r = 0.000946877035f;
  r = r * part + 0.00920918025f;
  r = r * part + 0.0552981198f;
  r = r * part + 0.240178958f;
  r = r * part + 0.693143129f;
  r = r * part + 1.0f;
  return ScaleDown(r, static_cast<float>(whole));
}

// log2(value) for a positive normal value; infinity and NaN as they are.
// Absolute error below 2e-7 plus half a unit in the last place. With
// value = 2^e * (1 + t), t in [sqrt(1/2) - 1, sqrt(2) - 1), it is e + t * P(t),
// P interpolating log2(1 + t) / t at Chebyshev nodes.
inline float Log2(float value) {
#pragma HLS inline
  const uint32_t bits = BitsOfFloat(value);
  if (ExponentField(bits) == kNoExponent) return value;
  int32_t exponent = static_cast<int32_t>(ExponentField(bits)) -
                     static_cast<int32_t>(kExponentBias);
  uint32_t mantissa = (bits & 0x7FFFFFu) | (kExponentBias << 23);  // [1, 2)
  if (FloatOfBits(mantissa) >= 1.41421354f) {
    mantissa -= 1u << 23;  // halved
    ++exponent;
  }
  const float t = FloatOfBits(mantissa) - 1.0f;
  float r = -0.14275974f;
  r = r * t + 0.232652575f;
  r = r * t - 0.249271825f;
  r = r * t + 0.287288874f;
  r = r * t - 0.360225171f;
  r = r * t + 0.480916709f;
  r = r * t - 0.721352935f;
  r = r * t + 1.44269502f;
  return static_cast<float>(exponent) + ZeroBelow(r * t, -60);
}

// One NaN for all, since cores and processors give different ones.
inline uint32_t OutputBits(float value) {
#pragma HLS inline
  return value != value ? kNanBits : BitsOfFloat(value);
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_ARITHMETIC_H_
