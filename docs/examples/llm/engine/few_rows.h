// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of a few rows with packed weights: what decoding waits for. One row
// is bound by memory: each weight is read once, and there are always enough of
// them under way. More rows hide that behind their arithmetic.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Outputs of a block of packed weights.
inline constexpr uint32_t kOutputBlock = 64;
inline constexpr uint32_t kHalfBlock = kOutputBlock / 2;
// From a block's weights to those of its second half, whatever their type.
inline constexpr size_t kHalfStepBytes = kHalfBlock * sizeof(float);
// Rows of one product at most.
inline constexpr uint32_t kMaxFewRows = 32;

// Values of a row with the zeros behind it: all that a step of any type reads.
constexpr size_t PaddedInputs(size_t inputs) { return (inputs + 31) / 32 * 32; }

// A product of f32 rows with blocks of weights. bf16 weights are widened in
// registers.
//
// How a sum is formed, so that it is the same bits as that of a product for
// many rows: inputs come in chains, each summed up from zero in their order by
// fused multiplications, and added to the sum of those before. Without fused
// multiplications (SSE4) each product is rounded.
struct FewRows {
  WeightType type = WeightType::kF32;
  uint32_t inputs = 0;
  uint32_t chain = 0;        // inputs; even where weights are bf16
  uint32_t rows = 0;         // up to kMaxFewRows
  const float* x = nullptr;  // [rows, PaddedInputs(inputs)], borrowed
};

// y [rows, kOutputBlock] for one block of weights: f32 ones are
// [inputs, kOutputBlock]; bf16 ones [inputs / 2, kOutputBlock, 2] with zeros
// behind an odd input, which is how oneDNN packs them for AVX-512 and AMX. They
// are aligned to a cache line. `next`: the block that the thread is going to
// read next, which is asked for ahead of time; null: none.
//
// `outputs`: kOutputBlock, or kHalfBlock for the first half of a block's
// outputs, or, with weights from kHalfStepBytes on, for the second. y's other
// columns become zero. `next` is asked for as wide as that.
//
// Thread safety: may run concurrently, each with its own y.
void MultiplyFewRows(const FewRows& product, const void* weights,
                     const void* next, uint32_t outputs, float* y);

// wide [inputs, kOutputBlock] of a block of bf16 weights, which are packed as
// above: what a product of f32 takes. Both are aligned to a cache line.
// REQUIRES: inputs is even.
void WidenBlock(const void* weights, uint32_t inputs, float* wide);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_
