// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MATMUL_SET_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MATMUL_SET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Rows of one product at most.
inline constexpr uint32_t kMaxProductRows = 64;
// The product that chooses the layout of the weights, and what the bits of the
// other products are compared with.
inline constexpr uint32_t kReferenceRows = 16;

// Products of 1, 2, 4, ... kMaxProductRows rows with weights of one size, all
// in one layout.
struct MatmulSet {
  std::vector<OneDnnMatmul> by_rows;  // ascending

  const OneDnnMatmul& reference() const;
};

// The set of this size. A model has thousands of slices of weights and a
// handful of sizes, and a product takes kilobytes: whoever asks for a size that
// somebody holds gets the same set. Unimplemented as OneDnnMatmul::Create().
// Thread safety: may be called at the same time.
absl::StatusOr<std::shared_ptr<const MatmulSet>> MatmulsFor(WeightType type,
                                                            uint32_t inputs,
                                                            uint32_t outputs);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MATMUL_SET_H_
