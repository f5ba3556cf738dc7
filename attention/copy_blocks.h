// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_COPY_BLOCKS_H_
#define PAGED_KV_ATTENTION_COPY_BLOCKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"

namespace paged_kv::attention {

// One copy-on-write: the first `filled_tokens` slots of a page.
struct PageCopy {
  uint32_t source = 0;
  uint32_t target = 0;
  uint32_t filled_tokens = 0;  // <= block_tokens; 0 copies nothing
};

// Copies the filled slots of pages, in all layers and heads: of tiled K whole
// tiles of 16 tokens that hold a filled slot, of plain K and of V the rows of
// filled slots, of scales those of filled slots. Bytes of any dtype; nothing
// else in the target changes (in a partly filled tile, its unfilled slots do).
//
// Copies act in the order given, so one may read what an earlier one wrote. A
// copy onto itself does nothing.
//
// InvalidArgument, with the numbers and before anything is written, for pages
// that are not valid or not there and for more tokens than a page has.
absl::Status CopyBlocks(const KvPages& pages, absl::Span<const PageCopy> copies,
                        ParallelFor& parallel);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_COPY_BLOCKS_H_
