// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_TASKS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_TASKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "docs/examples/llm/engine/few_rows.h"

namespace paged_kv::llm {

// A block of outputs, for the engine's own products.
struct OutputBlock {
  uint32_t first = 0;  // output
  uint32_t outputs = 0;
  uint32_t chain = 0;  // FewRows::chain
  const std::byte* weights = nullptr;
};

struct FewRowsTask {
  OutputBlock block;   // without outputs: padding only
  uint32_t width = 0;  // what MultiplyFewRows() computes of it
};

// How a product of few rows is cut into tasks: whole blocks, then halves of
// those left when each thread has had as many, if there are threads for both
// halves. Without halves, two threads would take 5 and 4 blocks of 9.
class FewRowsTasks {
 public:
  // `blocks` is borrowed. REQUIRES: workers > 0.
  FewRowsTasks(absl::Span<const OutputBlock> blocks, size_t workers)
      : blocks_(blocks), whole_(blocks.size()) {
    const size_t left = blocks.size() % workers;
    if (2 * left <= workers) whole_ -= left;
  }

  size_t size() const { return 2 * blocks_.size() - whole_; }

  FewRowsTask operator[](size_t task) const {
    if (task < whole_) return {blocks_[task], kOutputBlock};
    const size_t half_index = task - whole_;
    OutputBlock block = blocks_[whole_ + half_index / 2];
    const uint32_t outputs = std::min(block.outputs, kHalfBlock);
    if (half_index % 2 == 0) {
      block.outputs = outputs;
    } else {
      block.first += outputs;
      block.outputs -= outputs;
      block.weights += kHalfStepBytes;
    }
    return {block, kHalfBlock};
  }

 private:
  const absl::Span<const OutputBlock> blocks_;
  size_t whole_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_FEW_ROWS_TASKS_H_
