// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_LINEAR_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/model_file/model.h"
#include "hwy/aligned_allocator.h"

namespace paged_kv::llm {

// LinearOptions::activation_parts that suits this processor: 2 for tiles, else
// 0.
uint32_t DefaultActivationParts();

struct LinearOptions {
  // How bf16 weights are multiplied; other weights meet f32 activations.
  //
  // 0: with f32 activations. Weights become f32 in registers, or, for many
  // rows, a slice at a time.
  //
  // 1 to 3: an activation is the sum of so many bf16 numbers, each the rounded
  // rest of those before: all of them meet the weights in one product, and the
  // results add up. 2 keep 16 bits of an activation's 24. Rounding to one would
  // make bf16's error of every activation part of the result, and decoding,
  // which waits for the weights, would be no faster. Where tiles multiply bf16
  // many times as fast as f32, two parts of it still are; where AVX-512
  // multiplies it at half the speed of f32, they are a quarter as fast.
  uint32_t activation_parts = DefaultActivationParts();
};

// Buffers that layers reuse. Thread safety: one Run() at a time.
class LinearScratch {
 public:
  LinearScratch() = default;

  // Memory of the buffers, which never shrink.
  size_t bytes() const;

 private:
  friend class Linear;
  struct Worker {
    // At least `bytes`, aligned to a cache line; what was there is lost.
    std::byte* Wide(size_t bytes);

    std::vector<float> y;
    std::vector<std::byte> onednn;
    hwy::AlignedFreeUniquePtr<std::byte[]> wide;
    size_t wide_bytes = 0;
  };
  std::vector<uint16_t> bf16;  // [row blocks, rows of a block, inputs]
  std::vector<float> f32;      // padded rows; a last block that is not full
  std::vector<Worker> workers;
};

// y = W x + bias. The weights are cut into slices of outputs, each packed once
// into the order that oneDNN prefers. Many rows are oneDNN's: a slice is a
// task, and stays in the core's cache while all rows pass by. Few, those of a
// decode step or a short prompt, go through products of our own (few_rows.h,
// tile_rows.h).
//
// A row's result is the same bits whatever rows come with it and however many
// threads run: an output is one sum wherever its task begins and ends, and of
// all products only those are used that were seen to add up in the same order.
// That makes a
// request's output independent of the batch that it is served in.
//
// Thread safety: immutable; Run() is const and takes its own scratch.
class Linear {
 public:
  // Matrices with the same columns, stacked: their outputs follow one another.
  // `bias` is empty or as long as all of them. Nothing of `matrices` is kept.
  // bf16 weights are kept as f32 where that way of multiplying them does not
  // work.
  // InvalidArgument if types or columns differ or activation_parts is out of
  // range.
  static absl::StatusOr<Linear> Create(absl::Span<const Matrix> matrices,
                                       std::vector<float> bias,
                                       const LinearOptions& options);
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  uint32_t inputs() const;
  uint32_t outputs() const;
  // Memory of the packed weights and the bias.
  size_t bytes() const;

  // The weights of one output, [inputs], as they were given.
  // REQUIRES: output < outputs().
  void Row(uint32_t output, absl::Span<float> weights) const;

  // x [rows, inputs], y [rows, outputs].
  void Run(absl::Span<const float> x, absl::Span<float> y,
           LinearScratch& scratch, attention::ParallelFor& parallel) const;

 private:
  struct Impl;
  explicit Linear(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_LINEAR_H_
