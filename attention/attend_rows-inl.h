// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The inner loops: a few rows, held in registers, times one chunk of keys.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attention/attend_internal.h"
#include "attention/exp2-inl.h"
#include "attention/kv_reader-inl.h"
#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of scores covers at most a tile.
using ScoreTag = hn::CappedTag<float, kTileTokens>;
inline constexpr size_t kScoreLanes = hn::MaxLanes(ScoreTag());
inline constexpr size_t kVectorsPerTile = kTileTokens / kScoreLanes;

// Register blocking: rows times vectors of accumulators. 32 vector registers
// hold 8 x 2 of them beside what is loaded, 16 hold 4 x 2 or 2 x 4.
#if HWY_TARGET <= HWY_AVX3
inline constexpr size_t kMaxRegisterRows = 8;
inline constexpr size_t kTilesAtOnce = 2;
inline constexpr size_t kColumnsAtOnce = 2;
#elif HWY_TARGET == HWY_AVX2
inline constexpr size_t kMaxRegisterRows = 4;
inline constexpr size_t kTilesAtOnce = 1;
inline constexpr size_t kColumnsAtOnce = 2;
#elif HWY_TARGET == HWY_SCALAR
inline constexpr size_t kMaxRegisterRows = 1;
inline constexpr size_t kTilesAtOnce = 1;
inline constexpr size_t kColumnsAtOnce = 8;
#else
inline constexpr size_t kMaxRegisterRows = 2;
inline constexpr size_t kTilesAtOnce = 1;
inline constexpr size_t kColumnsAtOnce = 4;
#endif

// A chunk of keys and values as the inner loops read them.
struct ChunkView {
  const uint8_t* tiles[kChunkTiles];
  const uint8_t* const* values;  // [kChunkTokens] rows
  uint32_t begin = 0;            // lanes that hold keys of the item
  uint32_t end = 0;
  // What the next chunk will read; memory that is hot anyway if there is none.
  const uint8_t* prefetch_tiles[kChunkTiles];
  const uint8_t* const* prefetch_values;
};

// Some rows of an item and their running state.
struct RowBlock {
  const float* queries = nullptr;  // [head_dim, rows], scaled
  float* outputs = nullptr;        // [rows, output_stride], unnormalised
  float* maxima = nullptr;         // [rows], log2
  float* sums = nullptr;           // [rows]
  float* scores = nullptr;         // [rows, kChunkTokens], scratch
  // Lanes of the chunk that each row sees, first_lane .. last_lane - 1.
  uint32_t first_lane[kMaxRegisterRows];
  uint32_t last_lane[kMaxRegisterRows];
};

// What all chunks of a call share.
struct RowParameters {
  size_t head_dim = 0;
  size_t v_head_dim = 0;
  size_t output_stride = 0;
  float soft_cap_log2e = 0.0f;  // soft cap times log2(e); 0: none
};

// scores[row][lane] = query row . key lane, for the keys of kTiles tiles: a
// row-wise multiply-add without horizontal sums.
template <class Reader, size_t kRows, size_t kTiles>
HWY_INLINE void ScoreTiles(const uint8_t* const* tiles,
                           const uint8_t* const* prefetch,
                           const float* HWY_RESTRICT queries, size_t head_dim,
                           float* HWY_RESTRICT scores) {
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
  for (size_t pair = 0; pair < head_dim / 2; ++pair) {
    const size_t offset = pair * kPairBytes;
    HWY_UNROLL(2)
    for (size_t t = 0; t < kTiles; ++t) {
      HWY_UNROLL(2)
      for (size_t b = 0; b < kPairBytes; b += kTileRowBytes) {
        hwy::Prefetch(prefetch[t] + offset + b);
      }
    }
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
                           size_t head_dim, float* scores) {
  const size_t num_tiles = (chunk.end + kTileTokens - 1) / kTileTokens;
  size_t t = 0;
  if constexpr (kTilesAtOnce > 1) {
    for (; t + kTilesAtOnce <= num_tiles; t += kTilesAtOnce) {
      ScoreTiles<Reader, kRows, kTilesAtOnce>(
          chunk.tiles + t, chunk.prefetch_tiles + t, queries, head_dim,
          scores + t * kTileTokens);
    }
  }
  for (; t < num_tiles; ++t) {
    ScoreTiles<Reader, kRows, 1>(chunk.tiles + t, chunk.prefetch_tiles + t,
                                 queries, head_dim, scores + t * kTileTokens);
  }
}

// Caps the scores of one row and takes away the keys that it does not see.
// What lies in unseen lanes, NaN included, is replaced, never multiplied.
HWY_INLINE void CapAndMask(size_t lanes, uint32_t first_lane,
                           uint32_t last_lane, float soft_cap_log2e,
                           float* HWY_RESTRICT scores) {
  const ScoreTag d;
  if (soft_cap_log2e != 0.0f) {
    const auto cap = hn::Set(d, soft_cap_log2e);
    for (size_t j = 0; j < lanes; j += kScoreLanes) {
      const auto s = hn::LoadU(d, scores + j);
      hn::StoreU(hn::Mul(cap, hn::Tanh(d, s)), d, scores + j);
    }
  }
  if (first_lane == 0 && last_lane == lanes) return;
  const auto unseen = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto first = hn::Set(d, static_cast<float>(first_lane));
  const auto last = hn::Set(d, static_cast<float>(last_lane));
  for (size_t j = 0; j < lanes; j += kScoreLanes) {
    const auto lane = hn::Iota(d, static_cast<float>(j));
    const auto seen = hn::And(hn::Ge(lane, first), hn::Lt(lane, last));
    const auto s = hn::LoadU(d, scores + j);
    hn::StoreU(hn::IfThenElse(seen, s, unseen), d, scores + j);
  }
}

// Turns one row's scores into weights relative to the row's running maximum
// (online softmax); where the maximum grows, what was summed before shrinks.
HWY_INLINE void UpdateSoftmax(size_t lanes, size_t v_head_dim,
                              float* HWY_RESTRICT scores,
                              float* HWY_RESTRICT running_max,
                              float* HWY_RESTRICT running_sum,
                              float* HWY_RESTRICT output) {
  const ScoreTag d;
  auto max = hn::LoadU(d, scores);
  for (size_t j = kScoreLanes; j < lanes; j += kScoreLanes) {
    max = hn::Max(max, hn::LoadU(d, scores + j));
  }
  const float chunk_max = hn::GetLane(hn::MaxOfLanes(d, max));
  if (chunk_max > *running_max) {
    const auto shrink =
        Exp2(d, hn::Set(d, *running_max - chunk_max));  // 0 at first
    *running_max = chunk_max;
    *running_sum *= hn::GetLane(shrink);
    const hn::CappedTag<float, 8> d8;  // head dims are multiples of 8
    const auto factor = hn::Set(d8, hn::GetLane(shrink));
    for (size_t c = 0; c < v_head_dim; c += hn::Lanes(d8)) {
      hn::StoreU(hn::Mul(factor, hn::LoadU(d8, output + c)), d8, output + c);
    }
  }
  // Nothing seen yet: any finite reference gives the weights 0.
  const bool none = std::isinf(*running_max) && *running_max < 0;
  const auto reference = hn::Set(d, none ? 0.0f : *running_max);
  auto sum = hn::Zero(d);
  for (size_t j = 0; j < lanes; j += kScoreLanes) {
    const auto weight = Exp2(d, hn::Sub(hn::LoadU(d, scores + j), reference));
    sum = hn::Add(sum, weight);
    hn::StoreU(weight, d, scores + j);
  }
  *running_sum += hn::GetLane(hn::SumOfLanes(d, sum));
}

// outputs[row] += sum over lanes of weight[row][lane] * V[lane], for kColumns
// vectors of columns from `column` on.
template <class Reader, size_t kRows, size_t kColumns, class D>
HWY_INLINE void AccumulateColumns(D d, const ChunkView& chunk, size_t column,
                                  const float* HWY_RESTRICT weights,
                                  float* HWY_RESTRICT outputs,
                                  size_t output_stride) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> sums[kRows][kColumns];
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      sums[r][c] =
          hn::LoadU(d, outputs + r * output_stride + column + c * kLanes);
    }
  }
  const size_t offset = column * Reader::kElementBytes;
  constexpr size_t kBytes = kColumns * kLanes * Reader::kElementBytes;
  for (size_t j = chunk.begin; j < chunk.end; ++j) {
    const uint8_t* from = chunk.values[j] + offset;
    HWY_UNROLL(4)
    for (size_t b = 0; b < kBytes; b += 64) {
      hwy::Prefetch(chunk.prefetch_values[j] + offset + b);
    }
    hn::Vec<D> values[kColumns];
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      values[c] =
          Reader::ValueVector(d, from + c * kLanes * Reader::kElementBytes);
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[r * kChunkTokens + j]);
      HWY_UNROLL(8)
      for (size_t c = 0; c < kColumns; ++c) {
        sums[r][c] = hn::MulAdd(weight, values[c], sums[r][c]);
      }
    }
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      hn::StoreU(sums[r][c], d,
                 outputs + r * output_stride + column + c * kLanes);
    }
  }
}

template <class Reader, size_t kRows>
HWY_INLINE void AccumulateChunk(const ChunkView& chunk,
                                const RowParameters& parameters,
                                const float* weights, float* outputs) {
  // V rows are read without a byte beyond them: whole groups of vectors, whole
  // vectors, and 8 columns where vectors are longer.
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 8> d8;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t columns = parameters.v_head_dim;
  const size_t stride = parameters.output_stride;
  size_t c = 0;
  for (; c + kColumnsAtOnce * kLanes <= columns; c += kColumnsAtOnce * kLanes) {
    AccumulateColumns<Reader, kRows, kColumnsAtOnce>(d, chunk, c, weights,
                                                     outputs, stride);
  }
  for (; c + kLanes <= columns; c += kLanes) {
    AccumulateColumns<Reader, kRows, 1>(d, chunk, c, weights, outputs, stride);
  }
  if constexpr (kLanes > 8) {
    if (c < columns) {
      AccumulateColumns<Reader, kRows, 1>(d8, chunk, c, weights, outputs,
                                          stride);
    }
  }
}

// One chunk of keys and values for kRows rows.
template <class Reader, size_t kRows>
HWY_NOINLINE void AttendRows(const ChunkView& chunk,
                             const RowParameters& parameters,
                             const RowBlock& rows) {
  ScoreChunk<Reader, kRows>(chunk, rows.queries, parameters.head_dim,
                            rows.scores);
  const size_t lanes =
      (chunk.end + kTileTokens - 1) / kTileTokens * kTileTokens;
  for (size_t r = 0; r < kRows; ++r) {
    float* scores = rows.scores + r * kChunkTokens;
    CapAndMask(lanes, rows.first_lane[r], rows.last_lane[r],
               parameters.soft_cap_log2e, scores);
    UpdateSoftmax(lanes, parameters.v_head_dim, scores, rows.maxima + r,
                  rows.sums + r, rows.outputs + r * parameters.output_stride);
  }
  AccumulateChunk<Reader, kRows>(chunk, parameters, rows.scores, rows.outputs);
}

// AttendRows for 1 .. kMaxRegisterRows rows.
template <class Reader>
HWY_INLINE void AttendSomeRows(size_t num_rows, const ChunkView& chunk,
                               const RowParameters& parameters,
                               const RowBlock& rows) {
  switch (num_rows) {
    case 1:
      return AttendRows<Reader, 1>(chunk, parameters, rows);
#if HWY_TARGET != HWY_SCALAR
    case 2:
      return AttendRows<Reader, 2>(chunk, parameters, rows);
#if HWY_TARGET <= HWY_AVX2
    case 3:
      return AttendRows<Reader, 3>(chunk, parameters, rows);
    case 4:
      return AttendRows<Reader, 4>(chunk, parameters, rows);
#if HWY_TARGET <= HWY_AVX3
    case 5:
      return AttendRows<Reader, 5>(chunk, parameters, rows);
    case 6:
      return AttendRows<Reader, 6>(chunk, parameters, rows);
    case 7:
      return AttendRows<Reader, 7>(chunk, parameters, rows);
    case 8:
      return AttendRows<Reader, 8>(chunk, parameters, rows);
#endif
#endif
#endif
    default:
      HWY_ABORT("%d rows are more than registers hold",
                static_cast<int>(num_rows));
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
