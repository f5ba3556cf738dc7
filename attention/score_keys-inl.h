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

// sums[row][vector] += query dim * key dim, for dim kDim of a step and the
// vectors of lanes from `lane` of tiles[0] on. `queries` are those of the
// step's dims.
template <class Reader, size_t kDim, size_t kRows, size_t kVectors>
HWY_INLINE void AddDim(const uint8_t* const* tiles, size_t lane, size_t offset,
                       const float* HWY_RESTRICT queries,
                       hn::Vec<ScoreTag> (&sums)[kRows][kVectors]) {
  const ScoreTag d;
  hn::Vec<ScoreTag> keys[kVectors];
  HWY_UNROLL(16)
  for (size_t v = 0; v < kVectors; ++v) {
    keys[v] = Reader::template KeyVector<kDim>(
        d, tiles[v / kVectorsPerTile] + offset,
        lane + v % kVectorsPerTile * kScoreLanes);
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    const auto query = hn::Set(d, queries[kDim * kRows + r]);
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::MulAdd(query, keys[v], sums[r][v]);
    }
  }
}

// The same for all dims of a step.
template <class Reader, size_t kSums, size_t kRows, size_t kVectors>
HWY_INLINE void AddStep(const uint8_t* const* tiles, size_t lane, size_t offset,
                        const float* HWY_RESTRICT queries,
                        hn::Vec<ScoreTag> (&sums)[kSums][kRows][kVectors]) {
  AddDim<Reader, 0>(tiles, lane, offset, queries, sums[0]);
  AddDim<Reader, 1>(tiles, lane, offset, queries, sums[kSums - 1]);
  if constexpr (Reader::kStepDims == 4) {
    AddDim<Reader, 2>(tiles, lane, offset, queries, sums[0]);
    AddDim<Reader, 3>(tiles, lane, offset, queries, sums[kSums - 1]);
  }
}

// scores[row][lane] = query row . key lane, for kVectors vectors of lanes from
// `lane` of tiles[0] on: a row-wise multiply-add without horizontal sums.
// `scales` are those of the lanes, if the reader leaves them to us.
template <class Reader, size_t kRows, size_t kVectors>
HWY_INLINE void ScoreVectors(const uint8_t* const* tiles, size_t lane,
                             const float* HWY_RESTRICT queries, size_t head_dim,
                             const float* HWY_RESTRICT scales,
                             float* HWY_RESTRICT scores,
                             PrefetchCursor* cursor) {
  const ScoreTag d;
  constexpr size_t kTiles = (kVectors + kVectorsPerTile - 1) / kVectorsPerTile;
  constexpr size_t kSums = kChains<Reader, kRows>;
  hn::Vec<ScoreTag> sums[kSums][kRows][kVectors];
  HWY_UNROLL(2)
  for (size_t c = 0; c < kSums; ++c) {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < kVectors; ++v) sums[c][r][v] = hn::Zero(d);
    }
  }
  // Several passes over a tile take turns in asking for lines, so that these
  // are spread over all of them.
  constexpr size_t kPasses = kTiles * kVectorsPerTile / kVectors;
  constexpr size_t kStepLines =
      Reader::kStepDims * kTileTokens * Reader::kStoredBytes / kTileRowBytes;
  PrefetchCursor prefetch = *cursor;
  for (size_t step = 0; step < head_dim / Reader::kStepDims; ++step) {
    if (step % kPasses == 0) {
      prefetch.Prefetch<kTiles * kStepLines>();
    }
    AddStep<Reader>(tiles, lane, step * Reader::kStepBytes,
                    queries + step * Reader::kStepDims * kRows, sums);
  }
  *cursor = prefetch;
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = lane + v * kScoreLanes;
      auto sum = sums[0][r][v];
      if constexpr (kSums == 2) sum = hn::Add(sum, sums[1][r][v]);
      if constexpr (Reader::kHasScales) {
        sum = hn::Mul(sum, hn::LoadU(d, scales + at));
      }
      hn::StoreU(sum, d, scores + r * kChunkTokens + at);
    }
  }
}

// The same for kTiles tiles.
template <class Reader, size_t kRows, size_t kTiles>
HWY_INLINE void ScoreTiles(const ChunkView& chunk, size_t first_tile,
                           const float* queries, size_t head_dim, float* scores,
                           PrefetchCursor* prefetch) {
  constexpr size_t kVectors =
      HWY_MIN(kVectorsAtOnce<kRows>, kTiles * kVectorsPerTile);
  const size_t first_lane = first_tile * kTileTokens;
  for (size_t lane = 0; lane < kTiles * kTileTokens;
       lane += kVectors * kScoreLanes) {
    ScoreVectors<Reader, kRows, kVectors>(
        chunk.tiles + first_tile, lane, queries, head_dim,
        chunk.key_scales + first_lane, scores + first_lane, prefetch);
  }
}

// Scores of kRows rows and all tiles of the chunk.
template <class Reader, size_t kRows>
HWY_INLINE void ScoreRows(const ChunkView& chunk, size_t head_dim,
                          const RowBlock& rows) {
  constexpr size_t kTiles = kTilesAtOnce<kRows>;
  const size_t num_tiles = (chunk.end + kTileTokens - 1) / kTileTokens;
  size_t t = 0;
  for (; t + kTiles <= num_tiles; t += kTiles) {
    ScoreTiles<Reader, kRows, kTiles>(chunk, t, rows.queries, head_dim,
                                      rows.scores, rows.prefetch);
  }
  for (; t < num_tiles; ++t) {
    ScoreTiles<Reader, kRows, 1>(chunk, t, rows.queries, head_dim, rows.scores,
                                 rows.prefetch);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
