// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel gets: which pages hold the K/V of each sequence of a step.

#ifndef PAGED_KV_PAGE_TABLE_H_
#define PAGED_KV_PAGE_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace paged_kv {

// Page table of one step, layer group and tier in CSR form (the contract of
// FlashInfer's paged KV cache). Read-only; the arrays belong to the caller.
//
// Sequence i owns pages page_indices[indptr[i] .. indptr[i + 1]), in the order
// of their tokens; every page but the last is full. Without a window they
// cover positions 0, 1, 2, ... Where a windowed group has released blocks,
// first_token[i] > 0: the first `sink_pages` pages (whole table, see below)
// still cover the positions from 0, and the pages after them cover the
// positions from first_token[i], a multiple of block_tokens.
struct PageTable {
  absl::Span<const int32_t> indptr;            // [num_sequences + 1]
  absl::Span<const int32_t> page_indices;      // [indptr[num_sequences]]
  absl::Span<const int32_t> last_page_tokens;  // [num_sequences]; 0 if empty
  absl::Span<const int32_t> first_token;       // [num_sequences]
  int32_t block_tokens = 0;
  int32_t sink_pages = 0;  // ceil(sink_tokens / block_tokens) of the group

  size_t num_sequences() const { return last_page_tokens.size(); }

  // Tokens of sequence i that have a position, released ones included: the
  // position after its last token.
  int64_t SequenceTokens(size_t i) const {
    const int64_t pages = indptr[i + 1] - indptr[i];
    if (pages == 0) return first_token[i];  // 0, or all were released
    const int64_t held = (pages - 1) * block_tokens + last_page_tokens[i];
    if (first_token[i] == 0) return held;
    return held - int64_t{sink_pages} * block_tokens + first_token[i];
  }
};

// The caller's arrays that an export fills. Each must be at least as long as
// stated; longer is fine. Unused entries are left alone.
struct PageTableBuffers {
  absl::Span<int32_t> indptr;            // [num_sequences + 1]
  absl::Span<int32_t> page_indices;      // [total pages]
  absl::Span<int32_t> last_page_tokens;  // [num_sequences]
  absl::Span<int32_t> first_token;       // [num_sequences]
};

// The same table padded to a rectangle, for engines with static shapes.
struct PaddedPageTableBuffers {
  absl::Span<int32_t> page_indices;  // [num_sequences, width], row-major
  absl::Span<int32_t> tokens;        // [num_sequences]: SequenceTokens(i)
  absl::Span<int32_t> first_token;   // [num_sequences]
  int32_t width = 0;                 // pages per row
  // Written behind a row's last page. 0 is a page that may always be read;
  // kernels must still bound their work by `tokens`.
  int32_t padding = 0;
};

}  // namespace paged_kv

#endif  // PAGED_KV_PAGE_TABLE_H_
