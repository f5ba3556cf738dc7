// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a transformer does to single rows between its products. A row's result
// does not depend on the rows beside it.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_VECTOR_OPS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_VECTOR_OPS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "attention/parallel_for.h"

namespace paged_kv::llm {

// out[r] = x[r] * weight / sqrt(mean(x[r]^2) + epsilon) for each row (Zhang and
// Sennrich 2019, arXiv:1910.07467).
void RmsNorm(absl::Span<const float> x,       // [rows, weight.size()]
             absl::Span<const float> weight,  // [n]
             float epsilon, absl::Span<float> out,
             attention::ParallelFor& parallel);

// out = silu(gate) * up, silu(z) = z / (1 + exp(-z)) (Shazeer 2020,
// arXiv:2002.05202).
void SwiGlu(absl::Span<const float> gate_up,  // [rows, 2, n]
            size_t n, absl::Span<float> out,  // [rows, n]
            attention::ParallelFor& parallel);

// x += y.
void AddTo(absl::Span<float> x, absl::Span<const float> y,
           attention::ParallelFor& parallel);

// The index of the largest value, the first of equals; of values that are not
// numbers any index. REQUIRES: values is not empty.
size_t IndexOfLargest(absl::Span<const float> values);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_VECTOR_OPS_H_
