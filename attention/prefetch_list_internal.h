// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which cache lines to ask for while one chunk of keys is computed, so that the
// next one is there in time.
//
// The order matters as much as the distance. Lines that follow each other lie
// in one bank of memory; asking for them one after the other leaves the other
// banks idle. So the list walks eight runs of memory side by side, the keys and
// the values of each 16 tokens, which together reach the rate of a plain read.

#ifndef PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_
#define PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "attention/attend_internal.h"
#include "attention/key_cursor_internal.h"

namespace paged_kv::attention::internal {

// Runs of equal length that are read side by side.
struct PrefetchGroup {
  static constexpr size_t kRuns = 8;

  const uint8_t* runs[kRuns];
  size_t bytes = 0;
};

// Walks groups of runs. Small, so that an inner loop keeps a copy in registers.
class PrefetchCursor {
 public:
  PrefetchCursor() = default;
  PrefetchCursor(const PrefetchGroup* begin, const PrefetchGroup* end)
      : group_(begin), end_(end) {}

  // Asks for the next kLines lines, 1, 2, 4 or 8; nothing at the end. Into the
  // second-level cache: the first would have to hold two chunks.
  template <size_t kLines>
  ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Prefetch() {
    static_assert(PrefetchGroup::kRuns % kLines == 0);
    if (group_ == end_) return;
    // Behind calls that took fewer, some lines are asked for again.
    const size_t run = run_ / kLines * kLines;
    for (size_t i = 0; i < kLines; ++i) {
      __builtin_prefetch(group_->runs[run + i] + offset_, 0, 2);
    }
    run_ = (run + kLines) % PrefetchGroup::kRuns;
    if (run_ != 0) return;
    offset_ += kLineBytes;
    if (offset_ < group_->bytes) return;
    offset_ = 0;
    ++group_;
  }

  // Asks for all that are left.
  void Finish() {
    while (group_ != end_) Prefetch<1>();
  }

 private:
  static constexpr size_t kLineBytes = 64;

  const PrefetchGroup* group_ = nullptr;
  const PrefetchGroup* end_ = nullptr;
  size_t run_ = 0;
  size_t offset_ = 0;
};

// The lines of one chunk.
class PrefetchList {
 public:
  // Replaces what the list held. Cursors see it until the next call.
  PrefetchCursor Reset(const AttendCall& call, const KeyChunk& chunk);

 private:
  void AddRows(const uint8_t* const* rows, size_t row_bytes);
  void AddTiles(const uint8_t* const* tiles, size_t tile_bytes);
  PrefetchGroup* NewGroup(size_t bytes);

  // At most one for every few rows of keys and of values.
  PrefetchGroup groups_[2 * kChunkTokens / PrefetchGroup::kRuns];
  size_t num_groups_ = 0;
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_
