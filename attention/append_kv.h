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
// InvalidArgument, with the numbers and before anything is written, for pages
// or a layer that are not valid, 8-bit pages, another input dtype, null or
// misaligned arrays, and slots outside the pages.
absl::Status AppendKv(const KvPages& pages, uint32_t layer, const KvRows& k,
                      const KvRows& v,
                      absl::Span<const int64_t> slot_mapping,  // [tokens]
                      ParallelFor& parallel, Isa isa = Isa::kAuto);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_APPEND_KV_H_
