// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_ATTENTION_ARRAYS_H_
#define PAGED_KV_ATTENTION_ATTENTION_ARRAYS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "paged_kv/page_table.h"

namespace paged_kv::attention {

// What one attention call reads. Owns nothing.
struct AttentionInputs {
  KvPages pages;
  uint32_t layer = 0;
  PageTable table;
  uint32_t query_heads = 0;  // a multiple of pages.shape.kv_heads
  // [total_q, query_heads, head_dim]. Query heads h * g .. h * g + g - 1 read
  // KV head h, g = query_heads / kv_heads.
  absl::Span<const float> q;
};

// Where results go. The arrays belong to the caller and overlap no input.
struct AttentionOutputs {
  // [total_q, query_heads, v_head_dim]. Zeros for a query that sees no key.
  absl::Span<float> out;
  // [total_q, query_heads], or empty if not wanted: the natural log of the sum
  // of the exponentials of the (scaled, capped) scores, for MergePartials.
  // -infinity for a query that sees no key.
  absl::Span<float> lse;
};

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_ATTENTION_ARRAYS_H_
