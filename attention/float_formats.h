// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar conversions between f32 and the 16- and 8-bit formats. AppendKv gives
// exactly these bits on every instruction set.

#ifndef PAGED_KV_ATTENTION_FLOAT_FORMATS_H_
#define PAGED_KV_ATTENTION_FLOAT_FORMATS_H_

#include <cstdint>

#include "paged_kv/block_shape.h"

namespace paged_kv::attention {

// Round to nearest, ties to even; beyond the largest finite value to infinity.
// A NaN stays a NaN: made quiet, with its sign and the payload bits that fit.
uint16_t F32ToBf16(float value);
uint16_t F32ToF16(float value);

// Exact.
float Bf16ToF32(uint16_t bits);
float F16ToF32(uint16_t bits);

// E4M3 of the Open Compute Project's OFP8 (Micikevicius et al. 2022,
// arXiv:2209.05433), "FP8 E4M3FN" elsewhere: sign, 4 exponent bits with bias 7,
// 3 mantissa bits. No infinity; 0x7F and 0xFF are NaN; the largest value is
// 448, the smallest 2^-9.
//
// Round to nearest, ties to even; what is larger, infinity included, becomes
// +-448. A NaN stays a NaN, with its sign.
uint8_t F32ToE4m3(float value);
float E4m3ToF32(uint8_t bits);  // exact

// int8: two's complement. -128 is read as such and never written.
//
// Round to nearest, ties to even; what is larger, infinity included, becomes
// +-127. There is no NaN: it becomes 0.
uint8_t F32ToInt8(float value);
float Int8ToF32(uint8_t bits);  // exact

// The scale of a row whose largest finite magnitude is `largest`: stored
// elements times the scale are the row's. The largest magnitude becomes the
// dtype's, 448 or 127. A row of zeros has scale 1, and no scale is below
// 2^-126, so every scale and its reciprocal are normal numbers.
//
// `dtype` is kFp8E4M3 or kInt8.
float QuantizationScale(DType dtype, float largest);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_FLOAT_FORMATS_H_
