// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/weight_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "docs/examples/llm/model_file/weight_memory.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Whole blocks of every type; both buffers stay within a second-level cache.
constexpr uint64_t kChunkElements = 32 << 10;

// Calls sink(first element, values) for consecutive runs of the elements.
template <typename Sink>
absl::Status ReadElements(const ByteSource& source, uint64_t offset,
                          TensorType type, uint64_t elements, Sink sink) {
  const TensorBlock block = BlockOf(type);
  PAGED_KV_CHECK(block.bytes > 0);
  PAGED_KV_CHECK(elements % block.elements == 0);
  std::vector<char> bytes;
  std::vector<float> values;
  for (uint64_t first = 0; first < elements; first += kChunkElements) {
    const uint64_t count = std::min(kChunkElements, elements - first);
    bytes.resize(count / block.elements * block.bytes);
    values.resize(count);
    PAGED_KV_RETURN_IF_ERROR(source.Read(offset, absl::MakeSpan(bytes)));
    Dequantize(type, bytes, absl::MakeSpan(values));
    sink(first, absl::Span<const float>(values));
    offset += bytes.size();
  }
  return absl::OkStatus();
}

absl::Status CheckInside(const ByteSource& source, uint64_t offset,
                         TensorType type, uint64_t elements) {
  const TensorBlock block = BlockOf(type);
  PAGED_KV_CHECK(block.bytes > 0);
  const uint64_t bytes = elements / block.elements * block.bytes;
  if (offset > source.size() || bytes > source.size() - offset) {
    return absl::OutOfRangeError(
        absl::StrCat("weights of ", bytes, " bytes at byte ", offset,
                     ", the file has ", source.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Matrix> ReadMatrix(const ByteSource& source, uint64_t offset,
                                  TensorType type, uint32_t rows, uint32_t cols,
                                  WeightType weight_type) {
  Matrix matrix{weight_type, rows, cols, nullptr};
  PAGED_KV_RETURN_IF_ERROR(CheckInside(source, offset, type, matrix.size()));
  PAGED_KV_ASSIGN_OR_RETURN(WeightMemory allocated,
                            WeightMemory::Allocate(matrix.bytes()));
  const auto memory = std::make_shared<WeightMemory>(std::move(allocated));
  const auto store = [&](uint64_t first, absl::Span<const float> values) {
    if (weight_type == WeightType::kF32) {
      std::copy(values.begin(), values.end(),
                reinterpret_cast<float*>(memory->data()) + first);
    } else {
      std::transform(values.begin(), values.end(),
                     reinterpret_cast<uint16_t*>(memory->data()) + first,
                     attention::F32ToBf16);
    }
  };
  PAGED_KV_RETURN_IF_ERROR(
      ReadElements(source, offset, type, matrix.size(), store));
  matrix.data = {memory, memory->data()};
  return matrix;
}

absl::StatusOr<Matrix> TakeMatrix(std::shared_ptr<const ByteSource> source,
                                  uint64_t offset, TensorType type,
                                  uint32_t rows, uint32_t cols,
                                  WeightType weight_type, bool on_demand) {
  if (!on_demand) {
    return ReadMatrix(*source, offset, type, rows, cols, weight_type);
  }
  Matrix matrix{weight_type, rows, cols, nullptr};
  PAGED_KV_RETURN_IF_ERROR(CheckInside(*source, offset, type, matrix.size()));
  matrix.read = std::make_shared<const std::function<absl::StatusOr<Matrix>()>>(
      [=, source = std::move(source)] {
        return ReadMatrix(*source, offset, type, rows, cols, weight_type);
      });
  return matrix;
}

absl::StatusOr<std::vector<float>> ReadVector(const ByteSource& source,
                                              uint64_t offset, TensorType type,
                                              uint32_t size) {
  PAGED_KV_RETURN_IF_ERROR(CheckInside(source, offset, type, size));
  std::vector<float> vector(size);
  const auto store = [&](uint64_t first, absl::Span<const float> values) {
    std::copy(values.begin(), values.end(), vector.begin() + first);
  };
  PAGED_KV_RETURN_IF_ERROR(ReadElements(source, offset, type, size, store));
  return vector;
}

}  // namespace paged_kv::llm
