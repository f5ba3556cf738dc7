// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_PAGED_PREFILL_H_
#define PAGED_KV_ATTENTION_PAGED_PREFILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/attention_arrays.h"
#include "attention/attention_options.h"
#include "attention/attention_plan.h"
#include "attention/parallel_for.h"

namespace paged_kv::attention {

// Attention of the last tokens of each sequence, any number of them, to all
// its tokens (causal: up to the query's own). Their K/V must be in the pages
// already (AppendKv). A batch may mix whole prompts, chunks that continue a
// cached prefix, and decoding sequences with one query.
//
// Works on tiles of up to 128 (query, head) rows by 64 keys with a running
// maximum (FlashAttention, Dao et al. 2022, arXiv:2205.14135); tiles that no
// row sees are skipped, and only tiles on a boundary are masked. A V that is
// not finite spoils its column in all rows of a tile, those just before it
// included.
//
// Errors as in AttentionPlan::ForPrefill and Run(); on error nothing was
// written.
absl::Status PagedPrefill(const AttentionInputs& inputs,
                          absl::Span<const int32_t> qo_indptr,  // [n + 1]
                          const AttentionOptions& options,
                          const AttentionOutputs& outputs,
                          ParallelFor& parallel);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_PAGED_PREFILL_H_
