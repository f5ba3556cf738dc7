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

// sums[row][vector] += query dim * key dim, for dim kDim of a step. `queries`
// are those of the step's dims.
template <class Reader, size_t kDim, size_t kRows, size_t kVectors>
HWY_INLINE void AddDim(const uint8_t* const* tiles, size_t offset,
                       const float* HWY_RESTRICT queries,
                       hn::Vec<ScoreTag> (&sums)[kRows][kVectors]) {
  const ScoreTag d;
  hn::Vec<ScoreTag> keys[kVectors];
  HWY_UNROLL(16)
  for (size_t v = 0; v < kVectors; ++v) {
    keys[v] =
        Reader::template KeyVector<kDim>(d, tiles[v / kVectorsPerTile] + offset,
                                         v % kVectorsPerTile * kScoreLanes);
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    const auto query = hn::Set(d, queries[kDim * kRows + r]);
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::MulAdd(query, keys[v], sums[r][v]);
    }
  }
}

// scores[row][lane] = query row . key lane, for the keys of kTiles tiles: a
// row-wise multiply-add without horizontal sums. `scales` are those of the
// lanes, if the reader leaves them to us.
template <class Reader, size_t kRows, size_t kTiles>
HWY_INLINE void ScoreTiles(const uint8_t* const* tiles,
                           const float* HWY_RESTRICT queries, size_t head_dim,
                           const float* HWY_RESTRICT scales,
                           float* HWY_RESTRICT scores, PrefetchCursor* cursor) {
  const ScoreTag d;
  constexpr size_t kVectors = kTiles * kVectorsPerTile;
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
  for (size_t step = 0; step < head_dim / Reader::kStepDims; ++step) {
    const size_t offset = step * Reader::kStepBytes;
    prefetch.Prefetch<kTiles*(Reader::kStepBytes / kTileRowBytes)>();
    const float* step_queries = queries + step * Reader::kStepDims * kRows;
    AddDim<Reader, 0>(tiles, offset, step_queries, sums[0]);
    AddDim<Reader, 1>(tiles, offset, step_queries, sums[kChains - 1]);
    if constexpr (Reader::kStepDims == 4) {
      AddDim<Reader, 2>(tiles, offset, step_queries, sums[0]);
      AddDim<Reader, 3>(tiles, offset, step_queries, sums[kChains - 1]);
    }
  }
  *cursor = prefetch;
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      auto sum = sums[0][r][v];
      if constexpr (kChains == 2) sum = hn::Add(sum, sums[1][r][v]);
      if constexpr (Reader::kHasScales) {
        sum = hn::Mul(sum, hn::LoadU(d, scales + v * kScoreLanes));
      }
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
          chunk.tiles + t, queries, head_dim,
          chunk.key_scales + t * kTileTokens, scores + t * kTileTokens,
          prefetch);
    }
  }
  for (; t < num_tiles; ++t) {
    ScoreTiles<Reader, kRows, 1>(chunk.tiles + t, queries, head_dim,
                                 chunk.key_scales + t * kTileTokens,
                                 scores + t * kTileTokens, prefetch);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
