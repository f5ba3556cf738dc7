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
#include <cstring>
#include <limits>
#include <type_traits>

#include "attention/attend_internal.h"
#include "attention/attend_rows-inl.h"
#include "attention/key_cursor_internal.h"
#include "attention/kv_reader-inl.h"
#include "attention/prefetch_list_internal.h"
#include "attention/tile_transpose-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kLog2e = 1.44269504088896341f;
inline constexpr float kLn2 = 0.693147180559945309f;

// What a plain-order tile of fewer than 16 tokens reads for the others.
alignas(64) inline constexpr uint8_t kZeroRow[kMaxHeadDim * sizeof(float)] = {};

template <class Reader>
class ItemKernel {
 public:
  ItemKernel(const AttendCall& call, const AttendTask& task,
             const AttendTask& next, float* scratch)
      : call_(call),
        item_(*task.item),
        kv_head_(task.kv_head),
        next_(next),
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
               item_.num_rows > 2 * kMaxRegisterRows;
  }

  void Run() {
    KeyCursor cursor(call_, item_, kv_head_);
    KeyChunk chunks[2];
    bool more = cursor.Next(&chunks[0]);
    if (more) list_.Reset(call_, chunks[0]).Finish();
    Prepare();
    for (size_t i = 0; more; ++i) {
      const KeyChunk& chunk = chunks[i % 2];
      KeyChunk& ahead = chunks[(i + 1) % 2];
      more = cursor.Next(&ahead);
      if (more || FirstChunkOfNext(&ahead))
        prefetch_ = list_.Reset(call_, ahead);
      AttendChunk(chunk);
      prefetch_.Finish();
    }
    Finish();
  }

 private:
  bool FirstChunkOfNext(KeyChunk* chunk) const {
    return next_.item != nullptr &&
           KeyCursor(call_, *next_.item, next_.kv_head).Next(chunk);
  }

  // The place of a row among the sequence's queries.
  struct Row {
    int64_t token;
    uint32_t head;
  };
  Row RowOf(uint32_t r) const {
    const uint64_t packed = item_.first_row + r;
    return {
        static_cast<int64_t>(packed / call_.group),
        kv_head_ * call_.group + static_cast<uint32_t>(packed % call_.group)};
  }
  // Index of the row's (query, head) in q, out and lse.
  int64_t HeadIndex(const Row& row) const {
    return (item_.first_query + row.token) * call_.query_heads + row.head;
  }

  // Rows that registers hold together, from row r on.
  uint32_t BlockRows(uint32_t r) const {
    return std::min<uint32_t>(item_.num_rows - r, kMaxRegisterRows);
  }

  void Prepare() {
    for (uint32_t r = 0; r < item_.num_rows; r += kMaxRegisterRows) {
      PackQueries(r, BlockRows(r));
    }
    std::fill_n(scratch_ + layout_.maxima, item_.num_rows,
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_ + layout_.sums, item_.num_rows, 0.0f);
    std::fill_n(scratch_ + layout_.outputs,
                item_.num_rows * parameters_.output_stride, 0.0f);
  }

  // Scales the queries of `count` rows and stores them [head_dim, count], the
  // order in which the inner loop broadcasts them.
  void PackQueries(uint32_t first, uint32_t count) {
    float* to = scratch_ + layout_.queries + first * parameters_.head_dim;
    for (uint32_t i = 0; i < count; ++i) {
      const float* from =
          call_.q + HeadIndex(RowOf(first + i)) *
                        static_cast<int64_t>(parameters_.head_dim);
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
    if constexpr (Reader::kHasScales) CopyScales(chunk, &view);
    if (plain_) GatherKeys(chunk, &view);
    if (convert_) {
      const uint8_t* values[kChunkTokens];
      ConvertKeys(&view);
      ConvertValues(values, &view);
      AttendAllRows<F32Reader>(chunk, view);
    } else {
      AttendAllRows<Reader>(chunk, view);
    }
  }

  // Lanes without a key get scales of 0: none of their garbage is read.
  static void CopyScales(const KeyChunk& chunk, ChunkView* view) {
    std::fill_n(view->key_scales, kChunkTokens, 0.0f);
    std::fill_n(view->value_scales, kChunkTokens, 0.0f);
    for (uint32_t i = 0; i < chunk.num_scale_runs; ++i) {
      const KeyChunk::ScaleRun& run = chunk.scale_runs[i];
      const size_t bytes = (run.end - run.begin) * sizeof(float);
      std::memcpy(view->key_scales + run.begin, run.k, bytes);
      std::memcpy(view->value_scales + run.begin, run.v, bytes);
    }
  }

  // Copies plain-order keys into tiles.
  void GatherKeys(const KeyChunk& chunk, ChunkView* view) {
    const size_t row_bytes = parameters_.head_dim * Reader::kElementBytes;
    uint8_t* tiles =
        reinterpret_cast<uint8_t*>(scratch_ + layout_.gathered_keys);
    for (uint32_t t = 0; t * kTileTokens < chunk.end; ++t) {
      const uint32_t lane = t * kTileTokens;
      const uint32_t valid = std::min(kTileTokens, chunk.end - lane);
      const uint8_t* rows[kTileTokens];
      std::copy_n(chunk.k + lane, valid, rows);
      std::fill(rows + valid, rows + kTileTokens, kZeroRow);
      uint8_t* tile = tiles + t * kTileTokens * row_bytes;
      TransposeToTile(rows, row_bytes / kUnitBytes, tile, &prefetch_);
      view->tiles[t] = tile;
    }
  }

  // Converts keys to f32, scales included.
  void ConvertKeys(ChunkView* view) {
    const size_t steps = parameters_.head_dim / Reader::kStepDims;
    const size_t tile_floats = kTileTokens * parameters_.head_dim;
    for (uint32_t t = 0; t * kTileTokens < view->end; ++t) {
      float* tile = scratch_ + layout_.f32_keys + t * tile_floats;
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

  // Converts values to f32, scales included.
  void ConvertValues(const uint8_t** rows, ChunkView* view) {
    const hn::CappedTag<float, 8> d;  // v_head_dim is a multiple of 8
    constexpr size_t kLineElements = 64 / Reader::kElementBytes;
    for (uint32_t j = view->begin; j < view->end; ++j) {
      float* to = scratch_ + layout_.f32_values + j * parameters_.v_head_dim;
      for (size_t c = 0; c < parameters_.v_head_dim; c += hn::Lanes(d)) {
        const size_t offset = c * Reader::kElementBytes;
        if (c % kLineElements == 0) prefetch_.Prefetch<1>();
        auto values = Reader::ValueVector(d, view->values[j] + offset);
        if constexpr (Reader::kHasScales) {
          values = hn::Mul(values, hn::Set(d, view->value_scales[j]));
        }
        hn::StoreU(values, d, to + c);
      }
      rows[j] = reinterpret_cast<const uint8_t*>(to);
    }
    view->values = rows;
  }

  template <class ChunkReader>
  void AttendAllRows(const KeyChunk& chunk, const ChunkView& view) {
    for (uint32_t r = 0; r < item_.num_rows;) {
      const uint32_t count = BlockRows(r);
      RowBlock rows;
      rows.queries = scratch_ + layout_.queries + r * parameters_.head_dim;
      rows.outputs = scratch_ + layout_.outputs + r * parameters_.output_stride;
      rows.maxima = scratch_ + layout_.maxima + r;
      rows.sums = scratch_ + layout_.sums + r;
      rows.scores = scratch_ + layout_.scores;
      rows.prefetch = &prefetch_;
      bool any_seen = false;
      for (uint32_t i = 0; i < count; ++i) {
        const int64_t token = RowOf(r + i).token;
        any_seen |= SetSeenLanes(item_.first_position + token, chunk,
                                 &rows.first_lane[i], &rows.last_lane[i]);
      }
      if (any_seen) {
        AttendSomeRows<ChunkReader>(count, view, parameters_, rows);
      }
      r += count;
    }
  }

  // Which lanes a query at `position` sees; false if none.
  bool SetSeenLanes(int64_t position, const KeyChunk& chunk, uint32_t* first,
                    uint32_t* last) const {
    int64_t begin = chunk.begin;
    int64_t end = chunk.end;
    if (call_.causal) end = std::min(end, position + 1 - chunk.position);
    if (call_.window != 0 && !chunk.sinks) {
      begin = std::max(begin, position + 1 - call_.window - chunk.position);
    }
    if (begin >= end) {
      *first = *last = 0;
      return false;
    }
    *first = static_cast<uint32_t>(begin);
    *last = static_cast<uint32_t>(end);
    return true;
  }

  void Finish() const {
    for (uint32_t r = 0; r < item_.num_rows; ++r) {
      if (item_.partial_row >= 0) {
        WritePartial(r);
      } else {
        WriteOutput(r);
      }
    }
  }

  void WritePartial(uint32_t r) const {
    const int64_t index = kv_head_ * call_.partial_rows + item_.partial_row + r;
    call_.partial_max[index] = scratch_[layout_.maxima + r];
    call_.partial_sum[index] = scratch_[layout_.sums + r];
    std::copy_n(scratch_ + layout_.outputs + r * parameters_.output_stride,
                parameters_.v_head_dim,
                call_.partial_out +
                    index * static_cast<int64_t>(parameters_.output_stride));
  }

  void WriteOutput(uint32_t r) const {
    const int64_t index = HeadIndex(RowOf(r));
    const float sum = scratch_[layout_.sums + r];
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    const float* from =
        scratch_ + layout_.outputs + r * parameters_.output_stride;
    float* to =
        call_.out + index * static_cast<int64_t>(parameters_.v_head_dim);
    for (size_t c = 0; c < parameters_.v_head_dim; ++c)
      to[c] = from[c] * factor;
    if (call_.lse != nullptr) {
      call_.lse[index] = (scratch_[layout_.maxima + r] + std::log2(sum)) * kLn2;
    }
  }

  const AttendCall& call_;
  const WorkItem& item_;
  const uint32_t kv_head_;
  const AttendTask next_;
  const ScratchLayout layout_;
  float* const scratch_;
  RowParameters parameters_;
  bool plain_ = false;
  bool convert_ = false;
  PrefetchList list_;        // of the chunk after the present one
  PrefetchCursor prefetch_;  // in list_
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
