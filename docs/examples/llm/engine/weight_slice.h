// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "docs/examples/llm/engine/few_rows.h"
#include "docs/examples/llm/engine/matmul_set.h"
#include "docs/examples/llm/engine/onednn_matmul.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// How a layer's products are formed.
enum class Arithmetic {
  kF32,      // weights and rows of f32
  kBf16,     // weights and rows of bf16
  kWidened,  // weights of bf16 that become f32, rows of f32
};

// The type of packed weights.
WeightType StoredType(Arithmetic arithmetic);

// The type of oneDNN's products with them: f32 for kWidened.
WeightType ProductType(Arithmetic arithmetic);

// Outputs of a layer whose packed weights are one piece, and the products with
// them that give a row the same bits.
struct WeightSlice {
  uint32_t first = 0;  // output
  uint32_t outputs = 0;
  std::shared_ptr<const MatmulSet> matmuls;
  std::vector<const OneDnnMatmul*> by_rows;  // of these, ascending
  dnnl::memory::desc layout;                 // of `weights`
  dnnl::memory weights;
  // FewRows::chain with which a few rows give these bits too; 0: none is known,
  // or rows are of bf16.
  uint32_t few_rows_chain = 0;
  bool tile_rows = false;  // MultiplyTileRows() gives them, too

  // With what fills the last cache line.
  size_t PaddedBytes() const;
  // Weights that were widened for the products, if these take no others.
  size_t WideBytes() const;
};

// Finds products for a slice, without its weights, and their layout.
// Unimplemented as OneDnnMatmul::Create(), and if oneDNN's layout is not one
// that weights can be widened to.
absl::Status FindProducts(Arithmetic arithmetic, uint32_t inputs,
                          WeightSlice* slice);

// The weights of a slice as its products take them: those that it has, or, for
// kWidened, a copy at `wide`, WideBytes() aligned to a cache line.
dnnl::memory ProductWeights(Arithmetic arithmetic, const WeightSlice& slice,
                            std::byte* wide);

// As many slices as stay in a core's second cache, of equal size but for one
// block of outputs, without their weights. `bytes`: of all weights.
std::vector<WeightSlice> CutOutputs(uint32_t outputs, size_t bytes);

// Chooses the products of a slice that has its weights: all that were seen to
// give test rows the bits that the product of kReferenceRows rows gives. oneDNN
// has other kernels for few rows, and cuts long sums for many.
void ChooseProducts(Arithmetic arithmetic, uint32_t inputs, WeightSlice* slice);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_WEIGHT_SLICE_H_
