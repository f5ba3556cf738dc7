// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From keys in plain order to the tiles that the inner loops read.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_GATHER_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_GATHER_KEYS_INL_H_
#undef PAGED_KV_ATTENTION_GATHER_KEYS_INL_H_
#else
#define PAGED_KV_ATTENTION_GATHER_KEYS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/key_cursor_internal.h"
#include "attention/prefetch_list_internal.h"
#include "attention/tile_transpose-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

// What a tile of fewer than 16 tokens reads for the others.
alignas(64) inline constexpr uint8_t kZeroRow[kMaxHeadDim * sizeof(float)] = {};

// Copies the chunk's keys into tiles at `to` and points `tiles` at them.
HWY_INLINE void GatherKeys(const KeyChunk& chunk, size_t row_bytes, uint8_t* to,
                           const uint8_t** tiles, PrefetchCursor* prefetch) {
  for (uint32_t t = 0; t * kTileTokens < chunk.end; ++t) {
    const uint32_t lane = t * kTileTokens;
    const uint32_t valid = std::min(kTileTokens, chunk.end - lane);
    const uint8_t* rows[kTileTokens];
    std::copy_n(chunk.k + lane, valid, rows);
    std::fill(rows + valid, rows + kTileTokens, kZeroRow);
    uint8_t* tile = to + t * kTileTokens * row_bytes;
    TransposeToTile(rows, row_bytes / kUnitBytes, tile, prefetch);
    tiles[t] = tile;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
