// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_MERGE_PARTIALS_H_
#define PAGED_KV_ATTENTION_MERGE_PARTIALS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/attention_arrays.h"

namespace paged_kv::attention {

// The attention of some rows to a part of their keys, as the attention calls
// give it. Owns nothing.
struct PartialAttention {
  absl::Span<const float> out;  // [rows, v_head_dim]
  absl::Span<const float> lse;  // [rows], natural log
};

// Merges results over disjoint sets of keys into the result over all of them:
// with m = max lse_i and w_i = exp(lse_i - m),
//   out = sum w_i out_i / sum w_i,   lse = m + log(sum w_i)
// (the split-KV merge of Flash-Decoding). A row is a (query, query head), so
// rows = total_q * query_heads.
//
// A part that saw no key (lse -infinity) has no influence, whatever its `out`
// holds, and a row with a single other part is copied bit by bit. A row that no
// part has keys for gets zeros and -infinity. Parts are added in the order
// given. `outputs` may be the arrays of one of the parts; outputs.lse may be
// empty.
//
// InvalidArgument, with the numbers and before anything is written, for arrays
// of other sizes, null or misaligned ones.
absl::Status MergePartials(absl::Span<const PartialAttention> parts,
                           size_t rows, uint32_t v_head_dim,
                           const AttentionOutputs& outputs);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_MERGE_PARTIALS_H_
