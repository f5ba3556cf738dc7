// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ROPE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of the rows of a
// step. The angles are worked out once per step, in double precision, and serve
// all layers and heads.
//
// Thread safety: thread-compatible; Rotate() is const.
class Rope {
 public:
  // `factors`: Model::rope_factors.
  Rope(const ModelConfig& config, absl::Span<const float> factors);

  // The positions of the step's rows.
  void SetPositions(absl::Span<const uint32_t> positions);

  // Rotates the heads of row `row`: reads `heads` heads of head_dim values at
  // `source`, writes them to `target`, which may be `source`.
  void Rotate(size_t row, uint32_t heads, const float* source,
              float* target) const;

 private:
  RopeStyle style_;
  uint32_t half_;                    // pairs per head
  std::vector<double> frequencies_;  // [half]
  std::vector<float> cosines_;       // [rows, half]
  std::vector<float> sines_;         // [rows, half]
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ROPE_H_
