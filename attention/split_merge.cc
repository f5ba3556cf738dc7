// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/split_merge_internal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace paged_kv::attention::internal {
namespace {

// One row, `offset` rows behind the first of each part.
void MergeRow(const AttendCall& call, absl::Span<const int64_t> parts,
              int64_t offset, float* out, float* lse) {
  const size_t columns = call.pages.shape.VHeadDim();
  const auto stride = static_cast<int64_t>(OutputStride(call.pages.shape));
  float max = -std::numeric_limits<float>::infinity();
  for (const int64_t part : parts) {
    max = std::max(max, call.partial_reference[offset + part]);
  }
  // No part saw a key: any finite reference gives the weights 0.
  const float reference = std::isinf(max) && max < 0 ? 0.0f : max;

  std::fill_n(out, columns, 0.0f);
  float sum = 0.0f;
  for (const int64_t part : parts) {
    const int64_t row = offset + part;
    const float weight = std::exp2(call.partial_reference[row] - reference);
    sum += weight * call.partial_sum[row];
    const float* from = call.partial_out + row * stride;
    for (size_t c = 0; c < columns; ++c) out[c] += weight * from[c];
  }
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (size_t c = 0; c < columns; ++c) out[c] *= factor;
  constexpr float kLn2 = 0.693147180559945309f;
  if (lse != nullptr) *lse = (max + std::log2(sum)) * kLn2;
}

}  // namespace

void MergeSplits(const AttendCall& call, const SplitRows& split,
                 absl::Span<const int64_t> parts, uint32_t kv_head) {
  const WorkItem& rows = split.rows;
  for (uint32_t r = 0; r < rows.num_rows; ++r) {
    const uint64_t packed = rows.first_row + r;
    const int64_t query =
        rows.first_query + static_cast<int64_t>(packed / call.group);
    const int64_t head =
        kv_head * call.group + static_cast<int64_t>(packed % call.group);
    const int64_t index = query * call.query_heads + head;
    MergeRow(call, parts, kv_head * call.partial_rows + r,
             call.out + index * call.pages.shape.VHeadDim(),
             call.lse == nullptr ? nullptr : call.lse + index);
  }
}

}  // namespace paged_kv::attention::internal
