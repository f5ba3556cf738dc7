// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "docs/examples/llm/engine/few_rows.h"
#include "docs/examples/llm/engine/matmul_set.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Outputs of a layer whose packed weights are one piece, and the products with
// them that give a row the same bits.
struct WeightSlice {
  uint32_t first = 0;  // output
  uint32_t outputs = 0;
  std::shared_ptr<const MatmulSet> matmuls;
  std::vector<const OneDnnMatmul*> by_rows;  // of these, ascending
  dnnl::memory weights;
  // FewRows::chain with which a few rows give these bits too; 0: none is known.
  uint32_t few_rows_chain = 0;
  bool tile_rows = false;  // MultiplyTileRows() gives them, too

  const dnnl::memory::desc& Layout() const {
    return matmuls->reference().weights_layout();
  }
  // With what fills the last cache line.
  size_t PaddedBytes() const;
};

// As many slices as stay in a core's second cache, of equal size but for one
// block of outputs, without their weights. `bytes`: of all weights.
std::vector<WeightSlice> CutOutputs(uint32_t outputs, size_t bytes);

// Chooses the products of a slice that has its weights: all that were seen to
// give test rows the bits that the product of kReferenceRows rows gives. oneDNN
// has other kernels for few rows, and cuts long sums for many.
void ChooseProducts(WeightType type, uint32_t inputs, WeightSlice* slice);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_
