// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which cache lines to ask for while one chunk of keys is computed, so that the
// next one is there in time.
//
// The order matters as much as the distance. Lines that follow each other lie
// in one bank of memory; asking for them one after the other leaves the other
// banks idle. So the list walks runs of memory side by side, the keys and the
// values of each 16 tokens, which together reach the rate of a plain read.
//
// The processor's own prefetcher follows such runs, one in each 4 KiB (Intel 64
// and IA-32 Architectures Optimization Reference Manual, "Data Prefetching":
// one forward and one backward stream per page), and what it fetches takes no
// line buffer. Two runs side by side within 4 KiB would lose its help, so short
// runs are joined where they follow each other.

#ifndef PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_
#define PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "attention/attend_internal.h"
#include "attention/key_cursor_internal.h"

namespace paged_kv::attention::internal {

// Runs of equal length that are read side by side, a few lines of each by
// turns.
struct PrefetchGroup {
  // Lines of one turn over all runs.
  static constexpr size_t kLines = 8;

  const uint8_t* lines[kLines];  // of the first turn
  size_t step = 0;               // bytes from one turn to the next
  size_t bytes = 0;              // of a run
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
    static_assert(PrefetchGroup::kLines % kLines == 0);
    if (group_ == end_) return;
    // Behind calls that took fewer, some lines are asked for again.
    const size_t line = line_ / kLines * kLines;
    for (size_t i = 0; i < kLines; ++i) {
      __builtin_prefetch(group_->lines[line + i] + offset_, 0, 2);
    }
    line_ = (line + kLines) % PrefetchGroup::kLines;
    if (line_ != 0) return;
    offset_ += group_->step;
    if (offset_ < group_->bytes) return;
    offset_ = 0;
    ++group_;
  }

  // Asks for all that are left.
  void Finish() {
    while (group_ != end_) Prefetch<1>();
  }

 private:
  const PrefetchGroup* group_ = nullptr;
  const PrefetchGroup* end_ = nullptr;
  size_t line_ = 0;  // of the turn
  size_t offset_ = 0;
};

// The lines of one chunk.
class PrefetchList {
 public:
  // Replaces what the list held. Cursors see it until the next call.
  PrefetchCursor Reset(const AttendCall& call, const KeyChunk& chunk);

 private:
  void AddRows(const uint8_t* const* rows, size_t row_bytes);
  void AddPieces(const uint8_t* const* starts, size_t count, size_t bytes);
  void AddGroup(const uint8_t* const* runs, size_t count, size_t bytes);

  // At most one for every few rows of keys and of values.
  PrefetchGroup groups_[2 * kChunkTokens / PrefetchGroup::kLines];
  size_t num_groups_ = 0;
};

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_PREFETCH_LIST_INTERNAL_H_
