// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GGUF container: metadata by key and tensors by name, as described in
// docs/gguf.md of the ggml project. Knows nothing of models.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_FILE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/tensor_type.h"

namespace paged_kv::llm {

// Integers of all widths become int64_t (uint64_t above its range is refused),
// f32 and f64 become double.
using GgufValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string>>;

struct GgufTensor {
  TensorType type = TensorType::kF32;
  // Elements per dimension, the contiguous one first: a matrix [rows, cols] has
  // {cols, rows}. None is 0.
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;

  uint64_t elements() const;
};

// Invariants: every tensor lies within the file, is whole blocks, is readable
// by Dequantize, and overlaps no other.
struct GgufFile {
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

bool IsGguf(const ByteSource& source);

// Versions 2 and 3, little-endian. Memory in proportion to what the file really
// holds, whatever its header claims. InvalidArgument or OutOfRange: broken, and
// where. Unimplemented: a version or tensor type that cannot be read.
absl::StatusOr<GgufFile> ReadGguf(const ByteSource& source);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_FILE_H_
