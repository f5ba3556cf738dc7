// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/item_rows_internal.h"

#include <algorithm>
#include <cmath>

namespace paged_kv::attention::internal {

ItemRows::ItemRows(const AttendCall& call, const AttendTask& task)
    : call_(call), item_(*task.item), kv_head_(task.kv_head) {
  const int64_t first_head = int64_t{kv_head_} * call.group;
  auto token = static_cast<int64_t>(item_.first_row / call.group);
  auto head = static_cast<int64_t>(item_.first_row % call.group);
  for (uint32_t r = 0; r < item_.num_rows; ++r) {
    SharedQuery query{item_.first_query + token, item_.first_position + token};
    if (item_.first_shared >= 0) {
      query = call.shared_queries[item_.first_shared + token];
    }
    position_[r] = query.position;
    head_index_[r] = query.query * call.query_heads + first_head + head;
    if (++head == call.group) {
      head = 0;
      ++token;
    }
  }
}

bool ItemRows::SetSeenLanes(uint32_t r, const KeyChunk& chunk, uint32_t* first,
                            uint32_t* last) const {
  const int64_t position = position_[r];
  int64_t begin = chunk.begin;
  int64_t end = chunk.end;
  if (call_.causal) end = std::min(end, position + 1 - chunk.position);
  if (call_.window != 0 && !chunk.sinks) {
    begin = std::max(begin, position + 1 - call_.window - chunk.position);
  }
  if (begin >= end) {
    *first = *last = 0;
    return false;
  }
  *first = static_cast<uint32_t>(begin);
  *last = static_cast<uint32_t>(end);
  return true;
}

void ItemRows::Write(const float* outputs, const float* references,
                     const float* sums) const {
  const size_t stride = OutputStride(call_.pages.shape);
  for (uint32_t r = 0; r < item_.num_rows; ++r) {
    if (item_.partial_row >= 0) {
      WritePartial(r, outputs + r * stride, references[r], sums[r]);
    } else {
      WriteOutput(r, outputs + r * stride, references[r], sums[r]);
    }
  }
}

void ItemRows::WritePartial(uint32_t r, const float* output, float reference,
                            float sum) const {
  const BlockShape& shape = call_.pages.shape;
  const int64_t index = kv_head_ * call_.partial_rows + item_.partial_row + r;
  call_.partial_reference[index] = reference;
  call_.partial_sum[index] = sum;
  std::copy_n(
      output, shape.VHeadDim(),
      call_.partial_out + index * static_cast<int64_t>(OutputStride(shape)));
}

void ItemRows::WriteOutput(uint32_t r, const float* output, float reference,
                           float sum) const {
  const uint32_t columns = call_.pages.shape.VHeadDim();
  const int64_t index = HeadIndex(r);
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  float* to = call_.out + index * int64_t{columns};
  for (uint32_t c = 0; c < columns; ++c) to[c] = output[c] * factor;
  constexpr float kLn2 = 0.693147180559945309f;
  if (call_.lse != nullptr)
    call_.lse[index] = (reference + std::log2(sum)) * kLn2;
}

}  // namespace paged_kv::attention::internal
