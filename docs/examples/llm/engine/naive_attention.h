// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_NAIVE_ATTENTION_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_NAIVE_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Causal attention of a whole prompt in one layer, the textbook way: the scores
// of all pairs of tokens, their softmax, the sum of values. oneDNN computes
// each. What the kernels of `attention/` are compared with; it serves nobody.
//
// Thread safety: thread-compatible.
class NaiveAttention {
 public:
  // Of `config`: heads, kv_heads, head_dim. Takes memory for all scores, f32
  // [heads, tokens, tokens]. Unimplemented where oneDNN lacks a kernel.
  static absl::StatusOr<std::unique_ptr<NaiveAttention>> Create(
      const ModelConfig& config, uint32_t tokens);
  virtual ~NaiveAttention() = default;

  // q, out [tokens, heads, head_dim]; k, v [tokens, kv_heads, head_dim].
  // InvalidArgument for other sizes; oneDNN's errors.
  virtual absl::Status Run(absl::Span<const float> q, absl::Span<const float> k,
                           absl::Span<const float> v, absl::Span<float> out,
                           attention::ParallelFor& parallel) = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_NAIVE_ATTENTION_H_
