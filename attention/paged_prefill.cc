// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/paged_prefill.h"

#include "paged_kv/status_macros.h"

namespace paged_kv::attention {

absl::Status PagedPrefill(const AttentionInputs& inputs,
                          absl::Span<const int32_t> qo_indptr,
                          const AttentionOptions& options,
                          const AttentionOutputs& outputs,
                          ParallelFor& parallel) {
  PAGED_KV_ASSIGN_OR_RETURN(
      AttentionPlan plan,
      AttentionPlan::ForPrefill(inputs.pages, inputs.query_heads, inputs.table,
                                qo_indptr, options));
  return plan.Run(inputs.pages, inputs.layer, inputs.q, outputs, parallel);
}

}  // namespace paged_kv::attention
