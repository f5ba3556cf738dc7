// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One task of up to eight rows and 8-bit keys, as decoding has them, on the
// tile registers of Intel AMX. Both parts of all rows fit one tile (see
// amx_rows-inl.h), so each tile of keys or values is multiplied once. Elements
// are decoded one stage ahead of the product that takes them, so that no
// product waits for its own factors to be stored. A load also waits for stores
// under way whose addresses agree with its own in the lowest 12 bits (Intel 64
// and IA-32 Architectures Optimization Reference Manual, "4-KByte aliasing"),
// so what was stored just before a load never lies 4 KiB from it.
//
// Prefetches are spread evenly over the time of a chunk: 3/8 of its lines over
// the scores, a few per row over the softmax, 3/8 over the values.
//
// For bf16 pages multiply-adds of vectors are faster: they do not need more
// time than memory does, and their loads are spread more evenly.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_AMX_FEW_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_AMX_FEW_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_AMX_FEW_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_AMX_FEW_INL_H_
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
class AmxFewRowsKernel {
 public:
  static constexpr uint32_t kMaxRows = kAmxTileRows / 2;

  AmxFewRowsKernel(const AttendCall& call, const AttendTask& task,
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
  // Columns of V that are summed up at a time, and their tiles.
  static constexpr size_t kBlockColumns = 64;
  static constexpr size_t kBlockTiles = kBlockColumns / kAmxColumns;
  // Decoded keys of a step, of which two are kept; half of a block's values,
  // of which both are kept.
  static constexpr size_t kKeyStageBytes = kChunkTiles * kAmxTileBytes;
  static constexpr size_t kHalfTiles = kBlockTiles / 2;
  static constexpr size_t kHalfBytes = kHalfTiles * kAmxTileBytes;
  static_assert(kChunkTiles == 4 && kHalfTiles == 2);

  // Parts of the worker's scratch. Rows 2 r and 2 r + 1 of queries, scores,
  // weights and outputs are the two parts of row r.
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

    uint8_t* queries;   // tiles [step of dims]
    uint8_t* gathered;  // stored tiles of keys in plain order
    uint8_t* keys;      // tiles [step % 2][key tile]
    uint8_t* values;    // tiles [half of a block][column tile]
    float* scores;      // [16, kChunkTokens]
    uint8_t* weights;   // tiles [step of tokens]
    float* outputs;     // [16, stride], columns as in SortColumns()
    float* references;  // [rows]
    float* sums;        // [rows]
    float* lane_sums;   // [rows, kAmxColumns], what adds up to `sums`
  };

  size_t key_steps() const { return head_dim_ / kAmxTerms; }

  void Prepare() {
    std::memset(scratch_.queries, 0, key_steps() * kAmxTileBytes);
    std::memset(scratch_.weights, 0, kChunkTokens / kAmxTerms * kAmxTileBytes);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      uint8_t* row = scratch_.queries + 2 * r * kAmxTileRowBytes;
      PackQuery<Elements>(rows_.Query(r), head_dim_, row,
                          row + kAmxTileRowBytes);
    }
    std::fill_n(scratch_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.lane_sums, rows_.size() * kAmxColumns, 0.0f);
    std::fill_n(scratch_.outputs, kAmxTileRows * stride_, 0.0f);
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
    const AmxScales<Elements::kHasScales> scales(chunk);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      float* scores = scratch_.scores + 2 * r * kChunkTokens;
      prefetch_.Prefetch<8>();
      AddParts(scores);
      ScaleScores<Elements::kHasScales>(call_.score_scale, scales.keys, scores);
      CapAndMask(first_lane[r], last_lane[r], soft_cap_log2e_, scores);
      WeighRow(r, scores, scales.values);
    }
    AccumulateValues(chunk);
  }

  // scores = both parts of the queries times the keys of the chunk.
  void ScoreKeys(const KeyChunk& chunk) {
    const uint8_t* tiles[kChunkTiles];
    std::copy_n(chunk.k, kChunkTiles, tiles);
    if (plain_) {
      GatherKeys(chunk, head_dim_ * Elements::kElementBytes, scratch_.gathered,
                 tiles, &prefetch_);
      const size_t filled = (chunk.end + kTileTokens - 1) / kTileTokens;
      std::fill(tiles + filled, tiles + kChunkTiles, tiles[0]);
    }
    const Elements elements;
    AmxZero<0>();
    AmxZero<1>();
    AmxZero<2>();
    AmxZero<3>();
    PrefetchCursor prefetch = prefetch_;
    for (size_t step = 0; step <= key_steps(); ++step) {
      ScoreAndDecode<0>(elements, tiles[0], step, &prefetch);
      ScoreAndDecode<1>(elements, tiles[1], step, &prefetch);
      ScoreAndDecode<2>(elements, tiles[2], step, &prefetch);
      ScoreAndDecode<3>(elements, tiles[3], step, &prefetch);
    }
    prefetch_ = prefetch;
    constexpr size_t kRowBytes = kChunkTokens * sizeof(float);
    AmxStore<0>(scratch_.scores, kRowBytes);
    AmxStore<1>(scratch_.scores + kTileTokens, kRowBytes);
    AmxStore<2>(scratch_.scores + 2 * kTileTokens, kRowBytes);
    AmxStore<3>(scratch_.scores + 3 * kTileTokens, kRowBytes);
  }

  // Multiplies tile kTile of the step before, then decodes that of `step`.
  template <int kTile>
  HWY_INLINE void ScoreAndDecode(const Elements& elements, const uint8_t* tile,
                                 size_t step, PrefetchCursor* prefetch) const {
    if (step > 0) {
      const size_t now = step - 1;
      if (kTile == 0) AmxLoad<4>(scratch_.queries + now * kAmxTileBytes);
      constexpr int kRegister = 5 + kTile % 3;
      AmxLoad<kRegister>(scratch_.keys + now % 2 * kKeyStageBytes +
                         kTile * kAmxTileBytes);
      AmxMultiplyBf16<kTile, 4, kRegister>();
      prefetch->Prefetch<2>();
    }
    if (step < key_steps()) {
      elements.DecodeKeys(
          tile, step,
          scratch_.keys + step % 2 * kKeyStageBytes + kTile * kAmxTileBytes,
          prefetch);
    }
  }

  // The sum of the two rows of scores of one row of the item.
  static HWY_INLINE void AddParts(float* scores) {
    const AmxTag d;
    for (size_t j = 0; j < kChunkTokens; j += kAmxColumns) {
      const auto high = hn::Load(d, scores + j);
      const auto low = hn::Load(d, scores + kChunkTokens + j);
      hn::Store(hn::Add(high, low), d, scores + j);
    }
  }

  // From the scores of row r to its weights, those of 8-bit values times their
  // scales.
  HWY_INLINE void WeighRow(uint32_t r, const float* scores,
                           const float* value_scales) {
    hn::Vec<AmxTag> w[kChunkTokens / kAmxColumns];
    LoadWeights(scores, 2 * stride_, scratch_.references + r,
                scratch_.lane_sums + r * kAmxColumns,
                scratch_.outputs + 2 * r * stride_, w);
    if constexpr (Elements::kHasScales) ScaleWeights(value_scales, w);
    for (size_t step = 0; step < 2; ++step) {
      uint8_t* high =
          scratch_.weights + step * kAmxTileBytes + 2 * r * kAmxTileRowBytes;
      StoreWeights(w[2 * step], w[2 * step + 1], high, high + kAmxTileRowBytes);
    }
  }

  // outputs += weights times values, a block of columns and kAmxTerms tokens at
  // a time, which is a stage. While a half is multiplied, the other is decoded.
  void AccumulateValues(const KeyChunk& chunk) {
    const AmxValueRows values(chunk);
    const Elements elements;
    const size_t steps = (chunk.end + kAmxTerms - 1) / kAmxTerms;
    const size_t stages = v_head_dim_ / kBlockColumns * steps;
    PrefetchCursor prefetch = prefetch_;
    uint8_t* const half0 = scratch_.values;
    uint8_t* const half1 = half0 + kHalfBytes;
    for (size_t stage = 0; stage <= stages; ++stage) {
      const auto* rows = values.rows + stage % steps * kAmxTerms;
      const size_t column = stage / steps * kBlockColumns;
      if (stage < stages) {
        StageValues<0>(elements, rows, column, half0, &prefetch);
      }
      if (stage > 0) {
        const size_t now = stage - 1;
        MultiplyValues<1>(now % steps, now % steps + 1 == steps,
                          now / steps * kBlockColumns, half1, &prefetch);
      }
      if (stage < stages) {
        StageValues<1>(elements, rows, column, half1, &prefetch);
        MultiplyValues<0>(stage % steps, stage % steps + 1 == steps, column,
                          half0, &prefetch);
      }
    }
    prefetch_ = prefetch;
  }

  // The tiles of half a stage, from rows of V. Their pairs are tokens i and
  // i + 16, as in StoreWeights().
  template <int kHalf>
  HWY_INLINE void StageValues(const Elements& elements,
                              const uint8_t* const* rows, size_t column,
                              uint8_t* to, PrefetchCursor* prefetch) const {
    static_assert(Elements::kUnitColumns == kBlockColumns);
    const size_t offset = column * Elements::kElementBytes;
    for (size_t i = 0; i < kAmxTileRows; ++i) {
      if (i % 2 == 0) prefetch->Prefetch<1>();
      elements.template HalfValuePair<kHalf>(rows[i] + offset,
                                             rows[i + kAmxTileRows] + offset,
                                             to + i * kAmxTileRowBytes);
    }
  }

  // outputs += weights of a step times the values of half a stage. The sums of
  // a block of columns stay in tiles from its first step to its last one.
  template <int kHalf>
  HWY_INLINE void MultiplyValues(size_t step, bool is_last, size_t column,
                                 const uint8_t* values,
                                 PrefetchCursor* prefetch) const {
    constexpr int kSum = kHalfTiles * kHalf;
    float* outputs = scratch_.outputs + column + kSum * kAmxColumns;
    const size_t row_bytes = stride_ * sizeof(float);
    if (step == 0) {
      AmxLoad<kSum>(outputs, row_bytes);
      AmxLoad<kSum + 1>(outputs + kAmxColumns, row_bytes);
    }
    AmxLoad<4>(scratch_.weights + step * kAmxTileBytes);
    AmxLoad<5>(values);
    AmxMultiplyBf16<kSum, 4, 5>();
    prefetch->Prefetch<2>();
    AmxLoad<6>(values + kAmxTileBytes);
    AmxMultiplyBf16<kSum + 1, 4, 6>();
    prefetch->Prefetch<2>();
    if (!is_last) return;
    AmxStore<kSum>(outputs, row_bytes);
    AmxStore<kSum + 1>(outputs + kAmxColumns, row_bytes);
  }

  void Finish() const {
    const AmxTag d;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      // Row r lies before 2 r: what is still needed is not overwritten.
      float* output = scratch_.outputs + r * stride_;
      const float* parts = scratch_.outputs + 2 * r * stride_;
      for (size_t c = 0; c < v_head_dim_; c += kAmxColumns) {
        const auto high = hn::Load(d, parts + c);
        const auto low = hn::Load(d, parts + stride_ + c);
        hn::Store(hn::Add(high, low), d, output + c);
      }
      SortColumns<Elements>(v_head_dim_, output);
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
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
