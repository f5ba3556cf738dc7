// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of a few rows with packed weights: what decoding waits for. It is
// bound by memory, so all that counts is that each weight is read once, and
// that there is always enough of them under way.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// Outputs of a block of packed weights.
inline constexpr uint32_t kOutputBlock = 64;
// Rows of one product at most.
inline constexpr uint32_t kMaxFewRows = 8;

// Values of a row with the zeros behind it: all that a step of any type reads.
constexpr size_t PaddedInputs(size_t inputs) { return (inputs + 31) / 32 * 32; }

// A product of rows with blocks of weights.
//
// How a sum is formed, so that it is the same bits as that of a product for
// many rows: inputs come in chains, each summed up from zero in their order by
// fused multiplications, and added to the sum of those before. A chain of bf16
// is two sums, one of its even inputs and one of its odd ones, and subnormal
// numbers are zeros; with chains of 32 that is what TDPBF16PS does (Intel's
// instruction set reference). Without fused multiplications (SSE4) each product
// is rounded.
struct FewRows {
  WeightType type = WeightType::kF32;
  uint32_t inputs = 0;
  uint32_t chain = 0;  // inputs; even where weights are bf16
  uint32_t rows = 0;   // up to kMaxFewRows
  // [rows, PaddedInputs(inputs)]; bf16 values where weights are bf16. Borrowed.
  const float* x = nullptr;
};

// y [rows, kOutputBlock] for one block of weights: f32 ones are
// [inputs, kOutputBlock]; bf16 ones [inputs / 2, kOutputBlock, 2] with zeros
// behind an odd input, which is how oneDNN packs them for AVX-512 and AMX. They
// are aligned to a cache line. Behind them, up to `end`, lies what is going to
// be read next.
//
// Thread safety: may run concurrently, each with its own y.
void MultiplyFewRows(const FewRows& product, const void* weights,
                     const void* end, float* y);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_H_
