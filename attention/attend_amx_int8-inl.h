// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One task of up to eight rows and int8 keys, as decoding has them, on the tile
// registers of Intel AMX. Keys are multiplied as they lie in their pages: 16
// quads of dims of 16 tokens are one tile. Values have four tokens interleaved
// first.
//
// Products of tiles take bytes then, so queries and softmax weights become
// integers of 16 bits, one scale per row and, for weights, chunk. That is 256
// times finer than the keys and values themselves are. Their two bytes are two
// rows of a tile; sums are exact.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_AMX_INT8_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_AMX_INT8_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_AMX_INT8_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_AMX_INT8_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/amx_rows-inl.h"
#include "attention/amx_tile_internal.h"
#include "attention/attend_internal.h"
#include "attention/chunk_walk_internal.h"
#include "attention/gather_keys-inl.h"
#include "attention/item_rows_internal.h"
#include "attention/online_softmax-inl.h"
#include "attention/round_to_bytes-inl.h"
#include "attention/stage_int8-inl.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

class AmxInt8Kernel {
 public:
  static constexpr uint32_t kMaxRows = kAmxTileRows / 2;
  // Dims of keys that one tile sums over.
  static constexpr size_t kDims = 4 * kAmxTileRows;

  AmxInt8Kernel(const AttendCall& call, const AttendTask& task,
                const AttendTask& next, float* scratch)
      : call_(call),
        rows_(call, task),
        walk_(call, task, next),
        scratch_(call.pages.shape, scratch),
        head_dim_(call.pages.shape.head_dim),
        v_head_dim_(call.pages.shape.VHeadDim()),
        stride_(OutputStride(call.pages.shape)),
        plain_(call.pages.layout.k_order == KOrder::kTokenDim),
        soft_cap_log2e_(call.soft_cap * kLog2e) {}

  void Run() {
    const AmxTiles tiles(2 * rows_.size());
    Prepare();
    while (const KeyChunk* chunk = walk_.Next(&prefetch_)) {
      AttendChunk(*chunk);
      prefetch_.Finish();
    }
    Finish();
  }

 private:
  static constexpr size_t kUnitColumns = kInt8UnitColumns;
  static constexpr size_t kUnitBytes =
      kUnitColumns / kAmxColumns * kAmxTileBytes;

  // Parts of the worker's scratch. Rows 2 r and 2 r + 1 of queries, scores,
  // weights and products are the upper and the lower bytes of row r.
  struct Scratch {
    Scratch(const BlockShape& shape, float* base) {
      const ScratchLayout layout(shape);
      queries = reinterpret_cast<uint8_t*>(base + layout.queries);
      gathered = reinterpret_cast<uint8_t*>(base + layout.gathered_keys);
      products = reinterpret_cast<int32_t*>(base + layout.f32_keys);
      values = reinterpret_cast<uint8_t*>(base + layout.f32_values);
      scores = base + layout.scores;
      weights = reinterpret_cast<uint8_t*>(base + layout.weights);
      outputs = base + layout.outputs;
      references = base + layout.references;
      sums = base + layout.sums;
      lane_sums = base + layout.lane_sums;
    }

    uint8_t* queries;   // tiles [step of dims]
    uint8_t* gathered;  // stored tiles of keys in plain order
    int32_t* products;  // [16, kUnitColumns], of weights and values
    uint8_t* values;    // as StageInt8Values() leaves them
    float* scores;      // [16, kChunkTokens], int32 at first
    uint8_t* weights;   // one tile
    float* outputs;     // [rows, stride], columns as in SortInt8Columns()
    float* references;  // [rows]
    float* sums;        // [rows]
    float* lane_sums;   // [rows, kAmxColumns], what adds up to `sums`
  };

  size_t key_steps() const { return head_dim_ / kDims; }

  void Prepare() {
    std::memset(scratch_.queries, 0, key_steps() * kAmxTileBytes);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      const float scale = PackQuery(
          rows_.Query(r), scratch_.queries + 2 * r * kAmxTileRowBytes);
      score_factors_[r] = scale * call_.score_scale;
    }
    std::fill_n(scratch_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.lane_sums, rows_.size() * kAmxColumns, 0.0f);
    std::fill_n(scratch_.outputs, rows_.size() * stride_, 0.0f);
  }

  // The upper bytes of a query as a row of the tiles at `row`, its lower bytes
  // as the one below; returns the scale.
  float PackQuery(const float* query, uint8_t* row) const {
    return RoundQuery(
               query, head_dim_,
               [row](size_t dim, const int8_t* upper, const int8_t* lower) {
                 uint8_t* to = row + dim / kDims * kAmxTileBytes + dim % kDims;
                 std::memcpy(to, upper, kAmxColumns);
                 std::memcpy(to + kAmxTileRowBytes, lower, kAmxColumns);
               })
        .scale;
  }

  void AttendChunk(const KeyChunk& chunk) {
    uint32_t first_lane[kMaxRows];
    uint32_t last_lane[kMaxRows];
    bool any_seen = false;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      any_seen |= rows_.SetSeenLanes(r, chunk, first_lane + r, last_lane + r);
    }
    if (!any_seen) return;
    ScoreKeys(chunk);
    StageInt8Values(chunk, v_head_dim_, scratch_.values, &prefetch_);
    const AmxScales<true> scales(chunk);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      float* scores = scratch_.scores + 2 * r * kChunkTokens;
      prefetch_.Prefetch<8>();
      ScaleScores(score_factors_[r], scales.keys, scores);
      CapAndMask(first_lane[r], last_lane[r], soft_cap_log2e_, scores);
      WeighRow(r, scores, scales.values);
    }
    AccumulateValues();
  }

  // As many lines as a tile is read from.
  static HWY_INLINE void PrefetchTile(PrefetchCursor* prefetch) {
    prefetch->Prefetch<8>();
    static_assert(kAmxTileRows == 16);
  }

  // scores = queries times the keys of the chunk, both rows of each.
  void ScoreKeys(const KeyChunk& chunk) {
    const uint8_t* tiles[kChunkTiles];
    std::copy_n(chunk.k, kChunkTiles, tiles);
    if (plain_) {
      GatherKeys(chunk, head_dim_, scratch_.gathered, tiles, &prefetch_);
      const size_t filled = (chunk.end + kTileTokens - 1) / kTileTokens;
      std::fill(tiles + filled, tiles + kChunkTiles, tiles[0]);
    }
    AmxZero<0>();
    AmxZero<1>();
    AmxZero<2>();
    AmxZero<3>();
    PrefetchCursor prefetch = prefetch_;
    for (size_t step = 0; step < key_steps(); ++step) {
      const size_t offset = step * kAmxTileBytes;
      AmxLoad<4>(scratch_.queries + offset);
      PrefetchTile(&prefetch);
      AmxLoad<5>(tiles[0] + offset);
      AmxMultiplyInt8<0, 4, 5>();
      PrefetchTile(&prefetch);
      AmxLoad<6>(tiles[1] + offset);
      AmxMultiplyInt8<1, 4, 6>();
      PrefetchTile(&prefetch);
      AmxLoad<7>(tiles[2] + offset);
      AmxMultiplyInt8<2, 4, 7>();
      PrefetchTile(&prefetch);
      AmxLoad<5>(tiles[3] + offset);
      AmxMultiplyInt8<3, 4, 5>();
    }
    prefetch_ = prefetch;
    constexpr size_t kRowBytes = kChunkTokens * sizeof(int32_t);
    AmxStore<0>(scratch_.scores, kRowBytes);
    AmxStore<1>(scratch_.scores + kTileTokens, kRowBytes);
    AmxStore<2>(scratch_.scores + 2 * kTileTokens, kRowBytes);
    AmxStore<3>(scratch_.scores + 3 * kTileTokens, kRowBytes);
  }

  // From the two rows of integer scores of one row of the item to its scores.
  static HWY_INLINE void ScaleScores(float factor, const float* key_scales,
                                     float* scores) {
    const AmxTag d;
    const hn::RebindToSigned<AmxTag> di;
    const auto* integers = reinterpret_cast<const int32_t*>(scores);
    for (size_t j = 0; j < kChunkTokens; j += kAmxColumns) {
      const auto upper = hn::Load(di, integers + j);
      const auto lower = hn::Load(di, integers + kChunkTokens + j);
      const auto sum =
          hn::ConvertTo(d, hn::Add(hn::ShiftLeft<8>(upper), lower));
      const auto scale =
          hn::Mul(hn::Set(d, factor), hn::LoadU(d, key_scales + j));
      hn::Store(hn::Mul(sum, scale), d, scores + j);
    }
  }

  // From the scores of row r to its weights times the scales of the values.
  HWY_INLINE void WeighRow(uint32_t r, const float* scores,
                           const float* value_scales) {
    hn::Vec<AmxTag> w[kChunkTokens / kAmxColumns];
    LoadWeights(scores, v_head_dim_, scratch_.references + r,
                scratch_.lane_sums + r * kAmxColumns,
                scratch_.outputs + r * stride_, w);
    ScaleWeights(value_scales, w);
    uint8_t* upper = scratch_.weights + 2 * r * kAmxTileRowBytes;
    weight_scales_[r] = StoreWeightBytes(w, upper, upper + kAmxTileRowBytes);
  }

  // outputs += weights times values.
  void AccumulateValues() {
    AmxLoad<4>(scratch_.weights);
    const uint8_t* values = scratch_.values;
    for (size_t column = 0; column < v_head_dim_; column += kUnitColumns) {
      MultiplyUnit(values);
      for (uint32_t r = 0; r < rows_.size(); ++r) {
        prefetch_.Prefetch<4>();
        AddProducts(scratch_.products + 2 * r * kUnitColumns, weight_scales_[r],
                    scratch_.outputs + r * stride_ + column);
      }
      values += kUnitBytes;
    }
  }

  HWY_INLINE void MultiplyUnit(const uint8_t* values) const {
    AmxZero<0>();
    AmxLoad<5>(values);
    AmxMultiplyUint8Int8<0, 4, 5>();
    AmxZero<1>();
    AmxLoad<6>(values + kAmxTileBytes);
    AmxMultiplyUint8Int8<1, 4, 6>();
    AmxZero<2>();
    AmxLoad<7>(values + 2 * kAmxTileBytes);
    AmxMultiplyUint8Int8<2, 4, 7>();
    AmxZero<3>();
    AmxLoad<5>(values + 3 * kAmxTileBytes);
    AmxMultiplyUint8Int8<3, 4, 5>();
    constexpr size_t kRowBytes = kUnitColumns * sizeof(int32_t);
    AmxStore<0>(scratch_.products, kRowBytes);
    AmxStore<1>(scratch_.products + kAmxColumns, kRowBytes);
    AmxStore<2>(scratch_.products + 2 * kAmxColumns, kRowBytes);
    AmxStore<3>(scratch_.products + 3 * kAmxColumns, kRowBytes);
  }

  // Adds the two rows of products of one row of the item to its output.
  static HWY_INLINE void AddProducts(const int32_t* products, float scale,
                                     float* output) {
    const AmxTag d;
    const hn::RebindToSigned<AmxTag> di;
    for (size_t c = 0; c < kUnitColumns; c += kAmxColumns) {
      const auto upper = hn::Load(di, products + c);
      const auto lower = hn::Load(di, products + kUnitColumns + c);
      const auto sum =
          hn::ConvertTo(d, hn::Add(hn::ShiftLeft<8>(upper), lower));
      hn::Store(hn::MulAdd(sum, hn::Set(d, scale), hn::Load(d, output + c)), d,
                output + c);
    }
  }

  void Finish() const {
    const AmxTag d;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      SortInt8Columns(v_head_dim_, scratch_.outputs + r * stride_);
      const auto sums = hn::Load(d, scratch_.lane_sums + r * kAmxColumns);
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
  const float soft_cap_log2e_;
  float score_factors_[kMaxRows];  // of integer scores
  float weight_scales_[kMaxRows];  // of the chunk's integer weights
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
