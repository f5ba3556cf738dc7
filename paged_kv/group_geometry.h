// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_GROUP_GEOMETRY_H_
#define PAGED_KV_GROUP_GEOMETRY_H_

#include <algorithm>
#include <cstdint>

namespace paged_kv::internal {

// Which logical blocks of a layer group a sequence of some length needs.
struct GroupGeometry {
  uint32_t block_tokens = 0;
  uint32_t window = 0;        // 0: none
  uint32_t sink_blocks = 0;   // kept for ever at the start
  uint32_t pool = 0;          // index of its pool
  uint32_t table_width = 0;   // logical blocks of the longest sequence
  uint64_t table_offset = 0;  // in a sequence's row of all tables
  uint32_t first_place = 0;   // in PrefixIndex; one place per block of a chunk

  uint32_t BlocksFor(uint32_t tokens) const {
    return static_cast<uint32_t>((uint64_t{tokens} + block_tokens - 1) /
                                 block_tokens);
  }

  // First logical block, sinks aside, that the token at position `tokens` (and
  // so every later one) attends to.
  uint32_t FirstNeeded(uint32_t tokens) const {
    if (window == 0 || tokens < window) return 0;
    return (tokens - window + 1) / block_tokens;
  }

  // Calls f(first, last) for the runs of logical blocks below `blocks` that a
  // sequence continuing at `tokens` holds.
  template <typename F>
  void ForEachHeldRun(uint32_t first, uint32_t blocks, F f) const {
    if (first <= sink_blocks) {
      if (blocks > 0) f(0u, blocks);
      return;
    }
    const uint32_t sinks = std::min(sink_blocks, blocks);
    if (sinks > 0) f(0u, sinks);
    if (first < blocks) f(first, blocks);
  }

  // Blocks in these runs.
  uint32_t HeldBlocks(uint32_t first, uint32_t blocks) const {
    uint32_t held = 0;
    ForEachHeldRun(first, blocks,
                   [&held](uint32_t a, uint32_t b) { held += b - a; });
    return held;
  }
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_GROUP_GEOMETRY_H_
