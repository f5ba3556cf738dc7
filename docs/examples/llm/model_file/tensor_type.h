// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors in GGUF files, and their values in f32.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_TENSOR_TYPE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_TENSOR_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace paged_kv::llm {

// Numbers as in the file (enum ggml_type of ggml.h). Others exist; these are
// the ones that can be read.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ6_K = 14,
  kBf16 = 30,
};

// Elements come in blocks of `elements`, which take `bytes`.
struct TensorBlock {
  uint32_t elements = 0;
  uint32_t bytes = 0;
};

// {0, 0} for a type that cannot be read.
TensorBlock BlockOf(TensorType type);

// As ggml names it ("Q4_1", "IQ2_XXS"), known to this reader or not, else
// "type 77".
std::string TensorTypeName(TensorType type);

// The values of whole blocks.
// REQUIRES: blocks.size() == n * BlockOf(type).bytes and
// values.size() == n * BlockOf(type).elements for one n.
void Dequantize(TensorType type, absl::Span<const char> blocks,
                absl::Span<float> values);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_TENSOR_TYPE_H_
