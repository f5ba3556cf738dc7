// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar conversions between f32 and the 16-bit formats. AppendKv gives exactly
// these bits on every instruction set.

#ifndef PAGED_KV_ATTENTION_FLOAT_FORMATS_H_
#define PAGED_KV_ATTENTION_FLOAT_FORMATS_H_

#include <cstdint>

namespace paged_kv::attention {

// Round to nearest, ties to even; beyond the largest finite value to infinity.
// A NaN stays a NaN: made quiet, with its sign and the payload bits that fit.
uint16_t F32ToBf16(float value);
uint16_t F32ToF16(float value);

// Exact.
float Bf16ToF32(uint16_t bits);
float F16ToF32(uint16_t bits);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_FLOAT_FORMATS_H_
