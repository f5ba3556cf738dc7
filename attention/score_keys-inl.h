// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores: queries times the keys of a chunk.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_SCORE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_SCORE_KEYS_INL_H_
#undef PAGED_KV_ATTENTION_SCORE_KEYS_INL_H_
#else
#define PAGED_KV_ATTENTION_SCORE_KEYS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/kv_reader-inl.h"
#include "attention/row_block-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// scores[row][lane] = query row . key lane, for the keys of kTiles tiles: a
// row-wise multiply-add without horizontal sums.
template <class Reader, size_t kRows, size_t kTiles>
HWY_INLINE void ScoreTiles(const uint8_t* const* tiles,
                           const float* HWY_RESTRICT queries, size_t head_dim,
                           float* HWY_RESTRICT scores, PrefetchCursor* cursor) {
  const ScoreTag d;
  constexpr size_t kVectors = kTiles * kVectorsPerTile;
  constexpr size_t kPairBytes = Reader::kTileRowsPerPair * kTileRowBytes;
  // With few rows, even and odd dims have accumulators of their own, so that
  // enough independent sums are under way.
  constexpr size_t kChains = kRows * kVectors <= 4 ? 2 : 1;
  hn::Vec<ScoreTag> sums[kChains][kRows][kVectors];
  HWY_UNROLL(2)
  for (size_t c = 0; c < kChains; ++c) {
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < kVectors; ++v) sums[c][r][v] = hn::Zero(d);
    }
  }
  PrefetchCursor prefetch = *cursor;
  for (size_t pair = 0; pair < head_dim / 2; ++pair) {
    const size_t offset = pair * kPairBytes;
    prefetch.Prefetch<kTiles * Reader::kTileRowsPerPair>();
    hn::Vec<ScoreTag> keys[kVectors];
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      keys[v] =
          Reader::template KeyVector<0>(d, tiles[v / kVectorsPerTile] + offset,
                                        v % kVectorsPerTile * kScoreLanes);
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      const auto query = hn::Set(d, queries[2 * pair * kRows + r]);
      HWY_UNROLL(16)
      for (size_t v = 0; v < kVectors; ++v) {
        sums[0][r][v] = hn::MulAdd(query, keys[v], sums[0][r][v]);
      }
    }
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      keys[v] =
          Reader::template KeyVector<1>(d, tiles[v / kVectorsPerTile] + offset,
                                        v % kVectorsPerTile * kScoreLanes);
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      const auto query = hn::Set(d, queries[(2 * pair + 1) * kRows + r]);
      HWY_UNROLL(16)
      for (size_t v = 0; v < kVectors; ++v) {
        sums[kChains - 1][r][v] =
            hn::MulAdd(query, keys[v], sums[kChains - 1][r][v]);
      }
    }
  }
  *cursor = prefetch;
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      auto sum = sums[0][r][v];
      if constexpr (kChains == 2) sum = hn::Add(sum, sums[1][r][v]);
      hn::StoreU(sum, d, scores + r * kChunkTokens + v * kScoreLanes);
    }
  }
}

template <class Reader, size_t kRows>
HWY_INLINE void ScoreChunk(const ChunkView& chunk, const float* queries,
                           size_t head_dim, float* scores,
                           PrefetchCursor* prefetch) {
  const size_t num_tiles = (chunk.end + kTileTokens - 1) / kTileTokens;
  size_t t = 0;
  if constexpr (kTilesAtOnce > 1) {
    for (; t + kTilesAtOnce <= num_tiles; t += kTilesAtOnce) {
      ScoreTiles<Reader, kRows, kTilesAtOnce>(
          chunk.tiles + t, queries, head_dim, scores + t * kTileTokens,
          prefetch);
    }
  }
  for (; t < num_tiles; ++t) {
    ScoreTiles<Reader, kRows, 1>(chunk.tiles + t, queries, head_dim,
                                 scores + t * kTileTokens, prefetch);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
