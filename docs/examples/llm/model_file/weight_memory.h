// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_MEMORY_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace paged_kv::llm {

// Memory straight from the system, in whole pages. Weights live as long as the
// model: from the heap they would pin the gaps between what was needed for a
// moment while the file was read. Thread safety: thread-compatible.
class WeightMemory {
 public:
  // Zeros. ResourceExhausted: the system has none left.
  static absl::StatusOr<WeightMemory> Allocate(size_t bytes);

  WeightMemory() = default;
  WeightMemory(WeightMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  WeightMemory& operator=(WeightMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~WeightMemory();

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_MEMORY_H_
