// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_READER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/model.h"
#include "docs/examples/llm/model_file/tensor_type.h"

namespace paged_kv::llm {

// Reads rows * cols elements of `type` at `offset` into a matrix of
// `weight_type`; to bf16 it rounds to nearest. OutOfRange, before memory is
// taken, if the source does not hold them.
// REQUIRES: whole blocks of a type that can be read.
absl::StatusOr<Matrix> ReadMatrix(const ByteSource& source, uint64_t offset,
                                  TensorType type, uint32_t rows, uint32_t cols,
                                  WeightType weight_type);

// The same, or, with `on_demand`, a matrix that does so when it is asked for
// its data. OutOfRange at once either way.
absl::StatusOr<Matrix> TakeMatrix(std::shared_ptr<const ByteSource> source,
                                  uint64_t offset, TensorType type,
                                  uint32_t rows, uint32_t cols,
                                  WeightType weight_type, bool on_demand);

// As ReadMatrix for a vector, always in f32.
absl::StatusOr<std::vector<float>> ReadVector(const ByteSource& source,
                                              uint64_t offset, TensorType type,
                                              uint32_t size);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_WEIGHT_READER_H_
