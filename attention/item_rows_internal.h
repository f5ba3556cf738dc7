// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one task: where their queries and outputs are, what they see.

#ifndef PAGED_KV_ATTENTION_ITEM_ROWS_INTERNAL_H_
#define PAGED_KV_ATTENTION_ITEM_ROWS_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "attention/attend_internal.h"
#include "attention/key_cursor_internal.h"

namespace paged_kv::attention::internal {

class ItemRows {
 public:
  ItemRows(const AttendCall& call, const AttendTask& task);

  uint32_t size() const { return item_.num_rows; }

  // The query of row r, [head_dim].
  const float* Query(uint32_t r) const {
    return call_.q + HeadIndex(r) * int64_t{call_.pages.shape.head_dim};
  }

  // Which lanes of a chunk row r sees, first .. last - 1; false if none.
  bool SetSeenLanes(uint32_t r, const KeyChunk& chunk, uint32_t* first,
                    uint32_t* last) const;

  // Writes the outputs of all rows, or their partial results. Takes
  // unnormalised `outputs` [rows, OutputStride()], the `references` that
  // weights were relative to and the `sums` of weights, [rows].
  void Write(const float* outputs, const float* references,
             const float* sums) const;

 private:
  // Index of the row's (query, head) in q, out and lse.
  int64_t HeadIndex(uint32_t r) const { return head_index_[r]; }
  void WritePartial(uint32_t r, const float* output, float reference,
                    float sum) const;
  void WriteOutput(uint32_t r, const float* output, float reference,
                   float sum) const;

  const AttendCall& call_;
  const WorkItem& item_;
  const uint32_t kv_head_;
  int64_t position_[kMaxItemRows];  // of the row's query in its sequence
  int64_t head_index_[kMaxItemRows];
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_ITEM_ROWS_INTERNAL_H_
