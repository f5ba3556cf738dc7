// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One work item: packs its queries, walks its keys chunk by chunk, writes its
// outputs or partial results. Online softmax after Milakov & Gimelshein 2018
// (arXiv:1805.02867), tiling after FlashAttention (Dao et al. 2022,
// arXiv:2205.14135).

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "attention/attend_internal.h"
#include "attention/attend_rows-inl.h"
#include "attention/chunk_walk_internal.h"
#include "attention/gather_keys-inl.h"
#include "attention/item_rows_internal.h"
#include "attention/key_cursor_internal.h"
#include "attention/kv_reader-inl.h"
#include "attention/prefetch_list_internal.h"
#include "attention/stage_e4m3-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Reader>
class ItemKernel {
 public:
  ItemKernel(const AttendCall& call, const AttendTask& task,
             const AttendTask& next, float* scratch)
      : call_(call),
        rows_(call, task),
        walk_(call, task, next),
        layout_(call.pages.shape),
        scratch_(scratch) {
    const BlockShape& shape = call.pages.shape;
    parameters_.head_dim = shape.head_dim;
    parameters_.v_head_dim = shape.VHeadDim();
    parameters_.output_stride = OutputStride(shape);
    parameters_.soft_cap_log2e = call.soft_cap * kLog2e;
    plain_ = call.pages.layout.k_order == KOrder::kTokenDim;
    // With many rows it pays to convert a chunk to f32 once.
    convert_ = Reader::kElementBytes != sizeof(float) &&
               rows_.size() > 2 * kMaxRegisterRows;
    stage_ = kStages && !convert_ && parameters_.v_head_dim % 64 == 0;
  }

  void Run() {
    Prepare();
    while (const KeyChunk* chunk = walk_.Next(&prefetch_)) {
      AttendChunk(*chunk);
      prefetch_.Finish();
    }
    Finish();
  }

 private:
  static constexpr bool kStages =
      HWY_TARGET <= HWY_AVX3 && std::is_same_v<Reader, E4m3Reader>;

  // Rows that registers hold together, from row r on.
  uint32_t BlockRows(uint32_t r) const {
    const uint32_t left = rows_.size() - r;
    const bool is_f32 = convert_ || Reader::kElementBytes == sizeof(float);
    // Two halves rather than a wide block and a row or two.
    const bool halves =
        left > kWideRows && left <= size_t{2} * kMaxRegisterRows;
    if (is_f32 && left >= kWideRows && !halves) return kWideRows;
    return std::min<uint32_t>(left, kMaxRegisterRows);
  }

  void Prepare() {
    for (uint32_t r = 0; r < rows_.size(); r += BlockRows(r)) {
      PackQueries(r, BlockRows(r));
    }
    std::fill_n(scratch_ + layout_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_ + layout_.lane_sums, rows_.size() * kScoreLanes, 0.0f);
    std::fill_n(scratch_ + layout_.outputs,
                rows_.size() * parameters_.output_stride, 0.0f);
  }

  // Scales the queries of `count` rows and stores them [head_dim, count], the
  // order in which the inner loop broadcasts them.
  void PackQueries(uint32_t first, uint32_t count) {
    float* to = scratch_ + layout_.queries + first * parameters_.head_dim;
    for (uint32_t i = 0; i < count; ++i) {
      const float* from = rows_.Query(first + i);
      for (size_t d = 0; d < parameters_.head_dim; ++d) {
        to[d * count + i] = from[d] * call_.score_scale;
      }
    }
  }

  void AttendChunk(const KeyChunk& chunk) {
    ChunkView view;
    view.begin = chunk.begin;
    view.end = chunk.end;
    std::copy_n(chunk.k, kChunkTiles, view.tiles);
    view.values = chunk.v;
    if constexpr (Reader::kHasScales) {
      CopyScales(chunk, view.key_scales, view.value_scales);
    }
    if (plain_) {
      GatherKeys(chunk, parameters_.head_dim * Reader::kElementBytes,
                 reinterpret_cast<uint8_t*>(scratch_ + layout_.gathered_keys),
                 view.tiles, &prefetch_);
    }
    if (convert_) {
      AttendConverted(chunk, &view);
      return;
    }
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kStages) {
      if (stage_) {
        AttendStaged(chunk, &view);
        return;
      }
    }
#endif
    AttendAllRows<Reader>(chunk, view, [] {});
  }

  // Scratch for converted keys, then values, one in the place of the other, so
  // that both find it in the first-level cache.
  uint8_t* Converted() const {
    const bool keys_are_larger = parameters_.head_dim > parameters_.v_head_dim;
    return reinterpret_cast<uint8_t*>(
        scratch_ + (keys_are_larger ? layout_.f32_keys : layout_.f32_values));
  }

#if HWY_TARGET <= HWY_AVX3
  // By way of what StagedE4m3Reader reads.
  void AttendStaged(const KeyChunk& chunk, ChunkView* view) {
    uint8_t* staged = Converted();
    const uint32_t num_tiles = (view->end + kTileTokens - 1) / kTileTokens;
    E4m3Stage::Keys(view->tiles, num_tiles, parameters_.head_dim, staged);
    const size_t row_bytes =
        parameters_.v_head_dim * StagedE4m3Reader::kElementBytes;
    const uint8_t* rows[kChunkTokens];
    for (size_t j = 0; j < kChunkTokens; ++j) {
      rows[j] = staged + j * row_bytes;
      view->key_scales[j] *= StagedE4m3Reader::kFactor;
      view->value_scales[j] *= StagedE4m3Reader::kFactor;
    }
    const uint8_t* const* stored = view->values;
    view->values = rows;
    AttendAllRows<StagedE4m3Reader>(chunk, *view, [&] {
      E4m3Stage::Values(stored + view->begin, view->end - view->begin,
                        parameters_.v_head_dim,
                        staged + view->begin * row_bytes);
    });
  }
#endif

  // By way of f32.
  void AttendConverted(const KeyChunk& chunk, ChunkView* view) {
    ConvertKeys(view);
    const uint8_t* rows[kChunkTokens];
    const uint8_t* const* stored = view->values;
    view->values = rows;
    AttendAllRows<F32Reader>(chunk, *view,
                             [&] { ConvertValues(stored, *view, rows); });
  }

  // Converts keys to f32, scales included.
  void ConvertKeys(ChunkView* view) {
    const size_t steps = parameters_.head_dim / Reader::kStepDims;
    const size_t tile_floats = kTileTokens * parameters_.head_dim;
    for (uint32_t t = 0; t * kTileTokens < view->end; ++t) {
      float* tile = reinterpret_cast<float*>(Converted()) + t * tile_floats;
      const float* scales = view->key_scales + t * kTileTokens;
      for (size_t step = 0; step < steps; ++step) {
        const uint8_t* from = view->tiles[t] + step * Reader::kStepBytes;
        float* to = tile + step * Reader::kStepDims * kTileTokens;
        prefetch_.Prefetch<Reader::kStepBytes / kTileRowBytes>();
        ConvertDim<0>(from, scales, to);
        ConvertDim<1>(from, scales, to);
        if constexpr (Reader::kStepDims == 4) {
          ConvertDim<2>(from, scales, to);
          ConvertDim<3>(from, scales, to);
        }
      }
      view->tiles[t] = reinterpret_cast<const uint8_t*>(tile);
    }
  }

  // Dim kDim of a step of a tile.
  template <size_t kDim>
  static HWY_INLINE void ConvertDim(const uint8_t* step, const float* scales,
                                    float* to) {
    const ScoreTag d;
    for (size_t j = 0; j < kTileTokens; j += kScoreLanes) {
      auto keys = Reader::template KeyVector<kDim>(d, step, j);
      if constexpr (Reader::kHasScales) {
        keys = hn::Mul(keys, hn::LoadU(d, scales + j));
      }
      hn::StoreU(keys, d, to + kDim * kTileTokens + j);
    }
  }

  // Converts `stored` values to f32, scales included, and points `rows` at
  // them.
  void ConvertValues(const uint8_t* const* stored, const ChunkView& view,
                     const uint8_t** rows) {
    // v_head_dim is a multiple of 8.
    const hn::CappedTag<float, 16> d;
    const hn::CappedTag<float, 8> d8;
    constexpr size_t kLineElements = 64 / Reader::kElementBytes;
    const size_t columns = parameters_.v_head_dim;
    auto* converted = reinterpret_cast<float*>(Converted());
    for (uint32_t j = view.begin; j < view.end; ++j) {
      float* to = converted + j * columns;
      size_t c = 0;
      for (; c + hn::Lanes(d) <= columns; c += hn::Lanes(d)) {
        if (c % kLineElements == 0) prefetch_.Prefetch<1>();
        ConvertColumns(d, stored[j], view.value_scales[j], c, to);
      }
      for (; c < columns; c += hn::Lanes(d8)) {
        ConvertColumns(d8, stored[j], view.value_scales[j], c, to);
      }
      rows[j] = reinterpret_cast<const uint8_t*>(to);
    }
  }

  template <class D>
  static HWY_INLINE void ConvertColumns(D d, const uint8_t* row, float scale,
                                        size_t column, float* to) {
    auto values = Reader::ValueVector(d, row + column * Reader::kElementBytes);
    if constexpr (Reader::kHasScales)
      values = hn::Mul(values, hn::Set(d, scale));
    hn::StoreU(values, d, to + column);
  }

  // stage_values() is called before values are read.
  template <class ChunkReader, class StageValues>
  void AttendAllRows(const KeyChunk& chunk, const ChunkView& view,
                     const StageValues& stage_values) {
    RowBlock blocks[kMaxItemRows / kMaxRegisterRows];
    size_t num_blocks = 0;
    for (uint32_t r = 0; r < rows_.size(); r += BlockRows(r)) {
      RowBlock& rows = blocks[num_blocks];
      rows.num_rows = BlockRows(r);
      rows.queries = scratch_ + layout_.queries + r * parameters_.head_dim;
      rows.outputs = scratch_ + layout_.outputs + r * parameters_.output_stride;
      rows.references = scratch_ + layout_.references + r;
      rows.lane_sums = scratch_ + layout_.lane_sums + r * kScoreLanes;
      rows.scores = scratch_ + layout_.scores + r * kChunkTokens;
      rows.prefetch = &prefetch_;
      bool any_seen = false;
      for (uint32_t i = 0; i < rows.num_rows; ++i) {
        any_seen |= rows_.SetSeenLanes(r + i, chunk, &rows.first_lane[i],
                                       &rows.last_lane[i]);
      }
      if (any_seen) ++num_blocks;
    }
    AttendRows<ChunkReader>(view, parameters_, blocks, num_blocks,
                            stage_values);
  }

  void Finish() const {
    const ScoreTag d;
    const float* lane_sums = scratch_ + layout_.lane_sums;
    float* outputs = scratch_ + layout_.outputs;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      const auto sum = hn::LoadU(d, lane_sums + r * kScoreLanes);
      scratch_[layout_.sums + r] = hn::GetLane(hn::SumOfLanes(d, sum));
      if (!convert_) {
        SortColumns<Reader>(parameters_.v_head_dim,
                            outputs + r * parameters_.output_stride);
      }
    }
    rows_.Write(outputs, scratch_ + layout_.references,
                scratch_ + layout_.sums);
  }

  const AttendCall& call_;
  const ItemRows rows_;
  ChunkWalk walk_;
  PrefetchCursor prefetch_;  // lines of the chunk after the present one
  const ScratchLayout layout_;
  float* const scratch_;
  RowParameters parameters_;
  bool plain_ = false;
  bool convert_ = false;
  bool stage_ = false;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
