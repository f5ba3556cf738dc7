// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_PAGED_DECODE_H_
#define PAGED_KV_ATTENTION_PAGED_DECODE_H_

#include "absl/status/status.h"
#include "attention/attention_arrays.h"
#include "attention/attention_options.h"
#include "attention/attention_plan.h"
#include "attention/parallel_for.h"

namespace paged_kv::attention {

// Attention of one query per sequence, the sequence's last token, to all its
// tokens: out = softmax(scale * q K^T) V, in one pass over the pages with a
// running maximum (Milakov & Gimelshein 2018, arXiv:1805.02867; Dao et al.
// 2022, arXiv:2205.14135).
//
// Reads each visible K and V once per KV head, whatever the number of query
// heads: tokens * kv_heads * (head_dim + v_head_dim) elements. Slots that hold
// no token of the sequence may hold anything, NaN included.
//
// For one call; to run many layers with one table, plan once
// (AttentionPlan::ForDecode). Errors as there and as in Run(); on error
// nothing was written.
absl::Status PagedDecode(const AttentionInputs& inputs,
                         const AttentionOptions& options,
                         const AttentionOutputs& outputs,
                         ParallelFor& parallel);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_PAGED_DECODE_H_
