// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One task of many rows on the tile registers of Intel AMX. Queries and weights
// enter in two parts (see amx_rows-inl.h), each in tiles of its own, so that
// queries that are bf16 values to begin with need no second product. Two tiles
// of rows are multiplied with two of keys or values at a time, so that loads
// keep up.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/amx_elements-inl.h"
#include "attention/amx_rows-inl.h"
#include "attention/amx_tile_internal.h"
#include "attention/attend_internal.h"
#include "attention/chunk_walk_internal.h"
#include "attention/gather_keys-inl.h"
#include "attention/item_rows_internal.h"
#include "attention/online_softmax-inl.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Elements>
class AmxManyRowsKernel {
 public:
  AmxManyRowsKernel(const AttendCall& call, const AttendTask& task,
                    const AttendTask& next, float* scratch)
      : call_(call),
        rows_(call, task),
        walk_(call, task, next),
        scratch_(call.pages.shape, scratch),
        head_dim_(call.pages.shape.head_dim),
        v_head_dim_(call.pages.shape.VHeadDim()),
        stride_(OutputStride(call.pages.shape)),
        plain_(call.pages.layout.k_order == KOrder::kTokenDim),
        num_pairs_((rows_.size() + kPairRows - 1) / kPairRows),
        soft_cap_log2e_(call.soft_cap * kLog2e) {}

  void Run() {
    const AmxTiles tiles;
    Prepare();
    while (const KeyChunk* chunk = walk_.Next(&prefetch_)) {
      AttendChunk(*chunk);
      prefetch_.Finish();
    }
    Finish();
  }

 private:
  static constexpr size_t kSteps = kChunkTokens / kAmxTerms;
  static constexpr size_t kColumns = kAmxColumns;
  static constexpr size_t kPairRows = 2 * kAmxTileRows;

  // Parts of the worker's scratch.
  struct Scratch {
    Scratch(const BlockShape& shape, float* base) {
      const ScratchLayout layout(shape);
      queries = reinterpret_cast<uint8_t*>(base + layout.queries);
      gathered = reinterpret_cast<uint8_t*>(base + layout.gathered_keys);
      keys = reinterpret_cast<uint8_t*>(base + layout.f32_keys);
      values = reinterpret_cast<uint8_t*>(base + layout.f32_values);
      scores = base + layout.scores;
      weights = reinterpret_cast<uint8_t*>(base + layout.weights);
      outputs = base + layout.outputs;
      references = base + layout.references;
      sums = base + layout.sums;
      lane_sums = base + layout.lane_sums;
    }

    uint8_t* queries;   // tiles [row tile][part][step]
    uint8_t* gathered;  // stored tiles of keys in plain order
    uint8_t* keys;      // decoded tiles [key tile][step]
    uint8_t* values;    // tiles [step][column tile]
    float* scores;      // [32, kChunkTokens] of a pair of row tiles
    uint8_t* weights;   // tiles [row tile][step][part]
    float* outputs;     // [rows, stride], see SortColumns()
    float* references;  // [rows]
    float* sums;        // [rows]
    float* lane_sums;   // [rows, kAmxColumns], what adds up to `sums`
  };

  size_t steps() const { return head_dim_ / kAmxTerms; }
  uint8_t* QueryTile(size_t row_tile, size_t part) const {
    return scratch_.queries + (2 * row_tile + part) * steps() * kAmxTileBytes;
  }
  uint8_t* WeightTile(size_t row_tile, size_t step, size_t part) const {
    const size_t index = (row_tile * kSteps + step) * 2 + part;
    return scratch_.weights + index * kAmxTileBytes;
  }

  // Rows that fill up the last pair of tiles have zeros for queries and
  // weights.
  void Prepare() {
    const size_t padded_rows = num_pairs_ * kPairRows;
    std::memset(scratch_.queries, 0, num_pairs_ * 4 * steps() * kAmxTileBytes);
    std::memset(scratch_.weights, 0, num_pairs_ * 4 * kSteps * kAmxTileBytes);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      const size_t row = r % kAmxTileRows * kAmxTileRowBytes;
      has_low_queries_ |= PackQuery<Elements>(
          rows_.Query(r), head_dim_, QueryTile(r / kAmxTileRows, 0) + row,
          QueryTile(r / kAmxTileRows, 1) + row);
    }
    std::fill_n(scratch_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.lane_sums, padded_rows * kAmxColumns, 0.0f);
    std::fill_n(scratch_.outputs, padded_rows * stride_, 0.0f);
  }

  void AttendChunk(const KeyChunk& chunk) {
    const uint8_t* tiles[kChunkTiles];
    std::copy_n(chunk.k, kChunkTiles, tiles);
    if (plain_) {
      GatherKeys(chunk, head_dim_ * Elements::kElementBytes, scratch_.gathered,
                 tiles, &prefetch_);
      const size_t filled = (chunk.end + kTileTokens - 1) / kTileTokens;
      std::fill(tiles + filled, tiles + kChunkTiles, tiles[0]);
    }
    if constexpr (Elements::kDecodesKeys) {
      DecodeKeys(tiles);
      CopyScales(chunk, key_scales_, value_scales_);
    }
    const size_t steps = (chunk.end + kAmxTerms - 1) / kAmxTerms;
    bool any_seen = false;
    bool seen[kMaxItemRows / kPairRows];
    for (size_t p = 0; p < num_pairs_; ++p) {
      seen[p] = WeighRows(p, chunk, tiles);
      any_seen |= seen[p];
    }
    if (!any_seen) return;
    InterleaveValues(chunk, steps);
    for (size_t p = 0; p < num_pairs_; ++p) {
      if (!seen[p]) continue;
      for (size_t c = 0; c < v_head_dim_ / kColumns; c += 2) {
        AccumulateColumns(p, steps, c);
      }
    }
  }

  // Decodes the keys of a chunk and points `tiles` at them.
  void DecodeKeys(const uint8_t** tiles) {
    const Elements elements;
    for (size_t t = 0; t < kChunkTiles; ++t) {
      uint8_t* to = scratch_.keys + t * steps() * kAmxTileBytes;
      for (size_t step = 0; step < steps(); ++step) {
        elements.DecodeKeys(tiles[t], step, to + step * kAmxTileBytes,
                            &prefetch_);
      }
      tiles[t] = to;
    }
  }

  // Scores and weights of one pair of row tiles; false if they see no key.
  bool WeighRows(size_t pair, const KeyChunk& chunk,
                 const uint8_t* const* tiles) {
    const auto first_row = static_cast<uint32_t>(pair * kPairRows);
    const auto count = std::min<uint32_t>(rows_.size() - first_row, kPairRows);
    uint32_t first_lane[kPairRows];
    uint32_t last_lane[kPairRows];
    bool any_seen = false;
    for (uint32_t i = 0; i < count; ++i) {
      any_seen |= rows_.SetSeenLanes(first_row + i, chunk, first_lane + i,
                                     last_lane + i);
    }
    if (!any_seen) return false;
    ScoreTiles(pair, tiles, 0);
    ScoreTiles(pair, tiles, 2);
    for (uint32_t i = 0; i < count; ++i) {
      float* scores = scratch_.scores + i * kChunkTokens;
      ScaleScores<Elements::kHasScales>(call_.score_scale, key_scales_, scores);
      CapAndMask(first_lane[i], last_lane[i], soft_cap_log2e_, scores);
      WeighRow(first_row + i, scores);
    }
    return true;
  }

  // scores = queries of two row tiles times the keys of two tiles.
  void ScoreTiles(size_t pair, const uint8_t* const* tiles, size_t first_tile) {
    const size_t part_bytes = steps() * kAmxTileBytes;
    const uint8_t* rows0 = QueryTile(2 * pair, 0);
    const uint8_t* rows1 = QueryTile(2 * pair + 1, 0);
    const uint8_t* keys0 = tiles[first_tile];
    const uint8_t* keys1 = tiles[first_tile + 1];
    AmxZero<0>();
    AmxZero<1>();
    AmxZero<2>();
    AmxZero<3>();
    for (size_t at = 0; at < part_bytes; at += kAmxTileBytes) {
      AmxLoad<6>(keys0 + at);
      AmxLoad<7>(keys1 + at);
      MultiplyBlock(rows0 + at, rows1 + at);
      // As many lines as the two tiles of keys have.
      for (int i = 0; i < 4; ++i) prefetch_.Prefetch<8>();
      if (has_low_queries_) {
        MultiplyBlock(rows0 + part_bytes + at, rows1 + part_bytes + at);
      }
    }
    constexpr size_t kRowBytes = kChunkTokens * sizeof(float);
    float* scores = scratch_.scores + first_tile * kTileTokens;
    float* scores1 = scores + kAmxTileRows * kChunkTokens;
    AmxStore<0>(scores, kRowBytes);
    AmxStore<1>(scores + kTileTokens, kRowBytes);
    AmxStore<2>(scores1, kRowBytes);
    AmxStore<3>(scores1 + kTileTokens, kRowBytes);
  }

  // Tiles 0 .. 3 += the tiles at `rows0` and `rows1` times tiles 6 and 7.
  static HWY_INLINE void MultiplyBlock(const uint8_t* rows0,
                                       const uint8_t* rows1) {
    AmxLoad<4>(rows0);
    AmxMultiplyBf16<0, 4, 6>();
    AmxMultiplyBf16<1, 4, 7>();
    AmxLoad<5>(rows1);
    AmxMultiplyBf16<2, 5, 6>();
    AmxMultiplyBf16<3, 5, 7>();
  }

  // From the scores of row r to its weights, those of 8-bit values times their
  // scales.
  void WeighRow(uint32_t r, const float* scores) {
    float* sums = scratch_.lane_sums + r * kColumns;
    hn::Vec<AmxTag> weights[kChunkTokens / kColumns];
    LoadWeights(scores, v_head_dim_, scratch_.references + r, sums,
                scratch_.outputs + r * stride_, weights);
    if constexpr (Elements::kHasScales) ScaleWeights(value_scales_, weights);
    for (size_t step = 0; step < kSteps; ++step) {
      const size_t row = r % kAmxTileRows * kAmxTileRowBytes;
      StoreWeights(weights[2 * step], weights[2 * step + 1],
                   WeightTile(r / kAmxTileRows, step, 0) + row,
                   WeightTile(r / kAmxTileRows, step, 1) + row);
    }
  }

  // Tiles of values, whose pairs are tokens i and i + 16, as in StoreWeights().
  void InterleaveValues(const KeyChunk& chunk, size_t steps) {
    const AmxValueRows values(chunk);
    const Elements elements;
    constexpr size_t kUnit = Elements::kUnitColumns;
    for (size_t step = 0; step < steps; ++step) {
      const uint8_t* const* rows = values.rows + step * kAmxTerms;
      uint8_t* to =
          scratch_.values + step * (v_head_dim_ / kColumns) * kAmxTileBytes;
      for (size_t i = 0; i < kAmxTileRows; ++i) {
        for (size_t c = 0; c < v_head_dim_; c += kUnit) {
          prefetch_.Prefetch<2>();
          const size_t offset = c * Elements::kElementBytes;
          elements.ValuePair(
              rows[i] + offset, rows[i + kAmxTileRows] + offset,
              to + c / kColumns * kAmxTileBytes + i * kAmxTileRowBytes);
        }
      }
    }
  }

  // Two tiles of columns of the outputs of two row tiles += weights times
  // values.
  void AccumulateColumns(size_t pair, size_t steps, size_t column_tile) {
    const size_t column_tiles = v_head_dim_ / kColumns;
    const size_t row_bytes = stride_ * sizeof(float);
    float* outputs =
        scratch_.outputs + pair * kPairRows * stride_ + column_tile * kColumns;
    float* outputs1 = outputs + kAmxTileRows * stride_;
    AmxLoad<0>(outputs, row_bytes);
    AmxLoad<1>(outputs + kColumns, row_bytes);
    AmxLoad<2>(outputs1, row_bytes);
    AmxLoad<3>(outputs1 + kColumns, row_bytes);
    for (size_t s = 0; s < steps; ++s) {
      const uint8_t* values =
          scratch_.values + (s * column_tiles + column_tile) * kAmxTileBytes;
      AmxLoad<6>(values);
      AmxLoad<7>(values + kAmxTileBytes);
      MultiplyBlock(WeightTile(2 * pair, s, 0), WeightTile(2 * pair + 1, s, 0));
      MultiplyBlock(WeightTile(2 * pair, s, 1), WeightTile(2 * pair + 1, s, 1));
    }
    AmxStore<0>(outputs, row_bytes);
    AmxStore<1>(outputs + kColumns, row_bytes);
    AmxStore<2>(outputs1, row_bytes);
    AmxStore<3>(outputs1 + kColumns, row_bytes);
  }

  void Finish() const {
    const AmxTag d;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      SortColumns<Elements>(v_head_dim_, scratch_.outputs + r * stride_);
      const auto sums = hn::Load(d, scratch_.lane_sums + r * kColumns);
      scratch_.sums[r] = hn::GetLane(hn::SumOfLanes(d, sums));
    }
    rows_.Write(scratch_.outputs, scratch_.references, scratch_.sums);
  }

  const AttendCall& call_;
  const ItemRows rows_;
  ChunkWalk walk_;
  PrefetchCursor prefetch_;  // lines of the chunk after the present one
  const Scratch scratch_;
  const size_t head_dim_;
  const size_t v_head_dim_;
  const size_t stride_;
  const bool plain_;
  const size_t num_pairs_;
  const float soft_cap_log2e_;
  bool has_low_queries_ = false;
  // Of the chunk, for elements that have scales.
  alignas(64) float key_scales_[kChunkTokens];
  alignas(64) float value_scales_[kChunkTokens];
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
