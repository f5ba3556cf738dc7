// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels are measured against: scalar, double precision, obvious.

#ifndef PAGED_KV_ATTENTION_REFERENCE_ATTENTION_H_
#define PAGED_KV_ATTENTION_REFERENCE_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/attention_arrays.h"
#include "attention/attention_options.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"

namespace paged_kv::attention {

struct ReferenceOutputs {
  absl::Span<double> out;  // [total_q, query_heads, v_head_dim]
  absl::Span<double> lse;  // [total_q, query_heads]; may be empty
};

// Attention over the stored (rounded) K and V in double precision, as
// PagedPrefill defines it; for a decode, qo_indptr is 0, 1, 2, ... Takes any
// head_dim. options.isa is ignored. A query without a key gives zeros and
// -infinity.
//
// Errors as in PagedPrefill.
absl::Status ReferenceAttention(const AttentionInputs& inputs,
                                absl::Span<const int32_t> qo_indptr,  // [n + 1]
                                const AttentionOptions& options,
                                const ReferenceOutputs& outputs,
                                ParallelFor& parallel);

// One stored element, exactly; of 8-bit pages its code times its scale.
// Arguments in range.
double StoredKey(const KvPages& pages, uint32_t page, uint32_t layer,
                 uint32_t head, uint32_t token, uint32_t dim);
double StoredValue(const KvPages& pages, uint32_t page, uint32_t layer,
                   uint32_t head, uint32_t token, uint32_t dim);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_REFERENCE_ATTENTION_H_
