// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_APPEND_KV_H_
#define PAGED_KV_ATTENTION_APPEND_KV_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/isa.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"

namespace paged_kv::attention {

// New K or V of some tokens, [tokens, kv_heads, dim] with dense rows of `dim`
// elements. The strides let it be a part of a fused projection. Owns nothing.
struct KvRows {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t token_stride = 0;  // bytes; 0: dense
  int64_t head_stride = 0;   // bytes; 0: dense
  // Of rows that are fp8 e4m3 or int8 already, [tokens, kv_heads]: an element
  // means its code (float_formats.h) times the scale of its row. Null for all
  // other rows.
  const float* scales = nullptr;
  int64_t scale_token_stride = 0;  // bytes; 0: dense
  int64_t scale_head_stride = 0;   // bytes; 0: dense
};

// Writes the K and V of new tokens of one layer into their slots. Token i goes
// to page slot_mapping[i] / block_tokens, slot slot_mapping[i] % block_tokens
// of it; negative: nowhere (padding). Slots must differ, else what they hold is
// unspecified. Other slots are untouched.
//
// `k` and `v` are f32, rounded to the pages' dtype (to nearest, ties to even;
// float_formats.h), or of the pages' dtype already, copied bit by bit. A whole
// tile of 16 neighbouring tokens is transposed in registers and written as
// rows; single tokens touch one line per 4 bytes of K.
//
// For 8-bit pages each f32 row (one token, one KV head, K or V) gets a scale,
// QuantizationScale() of its largest finite magnitude, and elements are rounded
// after division by it. So a row that holds infinity or NaN spoils no other
// row, and not its own other elements: infinity becomes the row's largest
// value, NaN stays NaN in fp8 e4m3 and becomes 0 in int8, which has none.
//
// InvalidArgument, with the numbers and before anything is written, for pages
// or a layer that are not valid, another input dtype, null or misaligned
// arrays, slots outside the pages, and 8-bit rows without scales or with one
// that is not finite and above 0 (rows that go nowhere excepted).
absl::Status AppendKv(const KvPages& pages, uint32_t layer, const KvRows& k,
                      const KvRows& v,
                      absl::Span<const int64_t> slot_mapping,  // [tokens]
                      ParallelFor& parallel, Isa isa = Isa::kAuto);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_APPEND_KV_H_
