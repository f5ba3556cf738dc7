// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One task of int8 keys on the dot products of bytes that AVX-512 VNNI has,
// which do four times as many products as multiply-adds of f32 and need no
// conversion. Queries and weights become integers of 16 bits as in
// attend_amx_int8-inl.h; their two bytes are two sums.
//
// The instruction multiplies unsigned bytes by signed ones. Weights are
// unsigned. Keys become so by adding 128, which the sums of scores start
// without: at -128 times the sum of a query's bytes.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_DOT_INT8_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_DOT_INT8_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_DOT_INT8_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_DOT_INT8_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/amx_rows-inl.h"
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

using DotTag = hn::FixedTag<int32_t, 16>;
using DotVector = hn::Vec<DotTag>;

// sum += four products of unsigned and signed bytes in each lane. Assembly,
// because these kernels are compiled for AVX-512 without VNNI.
HWY_INLINE void AddDots(DotVector unsigned_bytes, DotVector signed_bytes,
                        DotVector* sum) {
  asm("vpdpbusd %2, %1, %0"
      : "+v"(sum->raw)
      : "v"(unsigned_bytes.raw), "v"(signed_bytes.raw));
}

// The two sums of integers of 16 bits, as one.
HWY_INLINE hn::Vec<hn::FixedTag<float, 16>> JoinBytes(DotVector upper,
                                                      DotVector lower) {
  const hn::FixedTag<float, 16> d;
  return hn::ConvertTo(d, hn::Add(hn::ShiftLeft<8>(upper), lower));
}

// Rows of one item that registers hold together.
struct DotRows {
  const int32_t* queries;      // [head_dim / 4, rows, 2 bytes] quads of dims
  const int32_t* offsets;      // [rows, 2], where the sums of scores start
  const uint8_t* weights;      // [rows, 2, 16] quads of tokens
  const float* weight_scales;  // [rows]
  float* scores;               // [rows, kChunkTokens]
  float* outputs;              // [rows, stride]
};

// The two products for kRows rows.
template <size_t kRows>
struct DotSteps {
  static constexpr size_t kAtOnce = 2;  // tiles of keys, vectors of values

  // Scores, still integers, of the chunk's tiles.
  static HWY_NOINLINE void Score(const uint8_t* const* tiles, size_t head_dim,
                                 const DotRows& rows, PrefetchCursor* cursor) {
    for (size_t t = 0; t < kChunkTiles; t += kAtOnce) {
      ScoreTiles(tiles + t, head_dim, rows, rows.scores + t * kTileTokens,
                 cursor);
    }
  }

  // outputs += weights times the staged values of the chunk.
  static HWY_NOINLINE void Accumulate(const uint8_t* values, size_t v_head_dim,
                                      size_t stride, const DotRows& rows,
                                      PrefetchCursor* cursor) {
    constexpr size_t kColumns = kAtOnce * kAmxColumns;
    for (size_t column = 0; column < v_head_dim; column += kColumns) {
      AccumulateColumns(values, stride, rows, rows.outputs + column, cursor);
      values += kAtOnce * kAmxTileBytes;
    }
  }

 private:
  static HWY_INLINE void ScoreTiles(const uint8_t* const* tiles,
                                    size_t head_dim, const DotRows& rows,
                                    float* scores, PrefetchCursor* cursor) {
    const DotTag d;
    DotVector sums[kRows][2][kAtOnce];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (size_t b = 0; b < 2; ++b) {
        HWY_UNROLL(2)
        for (size_t t = 0; t < kAtOnce; ++t) {
          sums[r][b][t] = hn::Set(d, rows.offsets[2 * r + b]);
        }
      }
    }
    const auto to_unsigned = hn::Set(d, static_cast<int32_t>(0x80808080));
    const int32_t* queries = rows.queries;
    PrefetchCursor prefetch = *cursor;
    for (size_t i = 0; i < head_dim / 4; ++i) {
      prefetch.Prefetch<1>();
      DotVector keys[kAtOnce];
      HWY_UNROLL(2)
      for (size_t t = 0; t < kAtOnce; ++t) {
        const auto* row =
            reinterpret_cast<const int32_t*>(tiles[t] + i * kAmxTileRowBytes);
        keys[t] = hn::Xor(hn::LoadU(d, row), to_unsigned);
      }
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(2)
        for (size_t b = 0; b < 2; ++b) {
          const auto query = hn::Set(d, queries[2 * r + b]);
          HWY_UNROLL(2)
          for (size_t t = 0; t < kAtOnce; ++t) {
            AddDots(keys[t], query, &sums[r][b][t]);
          }
        }
      }
      queries += 2 * kRows;
    }
    *cursor = prefetch;
    const hn::RebindToFloat<DotTag> df;
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (size_t t = 0; t < kAtOnce; ++t) {
        hn::Store(JoinBytes(sums[r][0][t], sums[r][1][t]), df,
                  scores + r * kChunkTokens + t * kTileTokens);
      }
    }
  }

  static HWY_INLINE void AccumulateColumns(const uint8_t* values, size_t stride,
                                           const DotRows& rows, float* outputs,
                                           PrefetchCursor* cursor) {
    const DotTag d;
    DotVector sums[kRows][2][kAtOnce];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (size_t b = 0; b < 2; ++b) {
        HWY_UNROLL(2)
        for (size_t c = 0; c < kAtOnce; ++c) sums[r][b][c] = hn::Zero(d);
      }
    }
    const auto* weights = reinterpret_cast<const int32_t*>(rows.weights);
    PrefetchCursor prefetch = *cursor;
    for (size_t i = 0; i < kAmxTileRows; ++i) {
      prefetch.Prefetch<1>();
      DotVector v[kAtOnce];
      HWY_UNROLL(2)
      for (size_t c = 0; c < kAtOnce; ++c) {
        v[c] =
            hn::Load(d, reinterpret_cast<const int32_t*>(
                            values + c * kAmxTileBytes + i * kAmxTileRowBytes));
      }
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(2)
        for (size_t b = 0; b < 2; ++b) {
          const auto weight =
              hn::Set(d, weights[(2 * r + b) * kAmxTileRows + i]);
          HWY_UNROLL(2)
          for (size_t c = 0; c < kAtOnce; ++c) {
            AddDots(weight, v[c], &sums[r][b][c]);
          }
        }
      }
    }
    *cursor = prefetch;
    const hn::RebindToFloat<DotTag> df;
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const auto scale = hn::Set(df, rows.weight_scales[r]);
      HWY_UNROLL(2)
      for (size_t c = 0; c < kAtOnce; ++c) {
        float* output = outputs + r * stride + c * kAmxColumns;
        const auto sum = JoinBytes(sums[r][0][c], sums[r][1][c]);
        hn::Store(hn::MulAdd(sum, scale, hn::Load(df, output)), df, output);
      }
    }
  }
};

class DotInt8Kernel {
 public:
  DotInt8Kernel(const AttendCall& call, const AttendTask& task,
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
    Prepare();
    while (const KeyChunk* chunk = walk_.Next(&prefetch_)) {
      AttendChunk(*chunk);
      prefetch_.Finish();
    }
    Finish();
  }

 private:
  // 28 sums in registers, and what they are made of.
  static constexpr uint32_t kMaxBlockRows = 7;

  // Parts of the worker's scratch.
  struct Scratch {
    Scratch(const BlockShape& shape, float* base) {
      const ScratchLayout layout(shape);
      queries = reinterpret_cast<uint8_t*>(base + layout.queries);
      gathered = reinterpret_cast<uint8_t*>(base + layout.gathered_keys);
      values = reinterpret_cast<uint8_t*>(base + layout.f32_values);
      scores = base + layout.scores;
      weights = reinterpret_cast<uint8_t*>(base + layout.weights);
      outputs = base + layout.outputs;
      references = base + layout.references;
      sums = base + layout.sums;
      lane_sums = base + layout.lane_sums;
    }

    uint8_t* queries;   // of each block, see DotRows
    uint8_t* gathered;  // stored tiles of keys in plain order
    uint8_t* values;    // as StageInt8Values() leaves them
    float* scores;      // [rows, kChunkTokens]
    uint8_t* weights;   // [rows, 2, kChunkTokens]
    float* outputs;     // [rows, stride], columns as in SortInt8Columns()
    float* references;  // [rows]
    float* sums;        // [rows]
    float* lane_sums;   // [rows, kAmxColumns], what adds up to `sums`
  };

  // Rows of the block at row r: no block is much smaller than the others.
  uint32_t BlockRows(uint32_t r) const {
    const uint32_t left = rows_.size() - r;
    const bool halves = left > kMaxBlockRows && left <= 2 * kMaxBlockRows;
    return halves ? (left + 1) / 2 : std::min(left, kMaxBlockRows);
  }

  void Prepare() {
    for (uint32_t r = 0; r < rows_.size(); r += BlockRows(r)) {
      for (uint32_t i = 0; i < BlockRows(r); ++i) {
        PackQuery(r + i, BlockRows(r),
                  scratch_.queries + 2 * (r * head_dim_ + 4 * i));
      }
    }
    std::fill_n(scratch_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.lane_sums, rows_.size() * kAmxColumns, 0.0f);
    std::fill_n(scratch_.outputs, rows_.size() * stride_, 0.0f);
  }

  // The query of row r at `to`, as DotRows has it.
  void PackQuery(uint32_t r, uint32_t block_rows, uint8_t* to) {
    const auto store = [&](size_t dim, const int8_t* upper,
                           const int8_t* lower) {
      for (size_t i = 0; i < kAmxColumns; i += 4) {
        uint8_t* quad = to + (dim + i) / 4 * 8 * block_rows;
        std::memcpy(quad, upper + i, 4);
        std::memcpy(quad + 4, lower + i, 4);
      }
    };
    const RoundedQuery query = RoundQuery(rows_.Query(r), head_dim_, store);
    score_factors_[r] = query.scale * call_.score_scale;
    score_offsets_[2 * r] = -128 * query.upper_sum;
    score_offsets_[2 * r + 1] = -128 * query.lower_sum;
  }

  void AttendChunk(const KeyChunk& chunk) {
    uint32_t first_lane[kMaxItemRows];
    uint32_t last_lane[kMaxItemRows];
    bool any_seen = false;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      any_seen |= rows_.SetSeenLanes(r, chunk, first_lane + r, last_lane + r);
    }
    if (!any_seen) return;
    const uint8_t* tiles[kChunkTiles];
    std::copy_n(chunk.k, kChunkTiles, tiles);
    if (plain_) {
      GatherKeys(chunk, head_dim_, scratch_.gathered, tiles, &prefetch_);
      const size_t filled = (chunk.end + kTileTokens - 1) / kTileTokens;
      std::fill(tiles + filled, tiles + kChunkTiles, tiles[0]);
    }
    ForEachBlock([&](auto steps, const DotRows& rows) {
      decltype(steps)::Score(tiles, head_dim_, rows, &prefetch_);
    });
    StageInt8Values(chunk, v_head_dim_, scratch_.values, &prefetch_);
    const AmxScales<true> scales(chunk);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      float* scores = scratch_.scores + r * kChunkTokens;
      prefetch_.Prefetch<8>();
      ScaleScores<true>(score_factors_[r], scales.keys, scores);
      CapAndMask(first_lane[r], last_lane[r], soft_cap_log2e_, scores);
      WeighRow(r, scores, scales.values);
    }
    ForEachBlock([&](auto steps, const DotRows& rows) {
      decltype(steps)::Accumulate(scratch_.values, v_head_dim_, stride_, rows,
                                  &prefetch_);
    });
  }

  // From the scores of row r to its weights times the scales of the values.
  HWY_INLINE void WeighRow(uint32_t r, const float* scores,
                           const float* value_scales) {
    hn::Vec<AmxTag> w[kChunkTokens / kAmxColumns];
    LoadWeights(scores, v_head_dim_, scratch_.references + r,
                scratch_.lane_sums + r * kAmxColumns,
                scratch_.outputs + r * stride_, w);
    ScaleWeights(value_scales, w);
    uint8_t* upper = scratch_.weights + 2 * r * kChunkTokens;
    weight_scales_[r] = StoreWeightBytes(w, upper, upper + kChunkTokens);
  }

  // Calls work(DotSteps of the number of rows, rows) for each block.
  template <class Work>
  void ForEachBlock(const Work& work) {
    for (uint32_t r = 0; r < rows_.size(); r += BlockRows(r)) {
      DotRows rows;
      rows.queries = reinterpret_cast<const int32_t*>(scratch_.queries +
                                                      2 * r * head_dim_);
      rows.offsets = score_offsets_ + 2 * r;
      rows.weights = scratch_.weights + 2 * r * kChunkTokens;
      rows.weight_scales = weight_scales_ + r;
      rows.scores = scratch_.scores + r * kChunkTokens;
      rows.outputs = scratch_.outputs + r * stride_;
      switch (BlockRows(r)) {
        case 1:
          work(DotSteps<1>(), rows);
          break;
        case 2:
          work(DotSteps<2>(), rows);
          break;
        case 3:
          work(DotSteps<3>(), rows);
          break;
        case 4:
          work(DotSteps<4>(), rows);
          break;
        case 5:
          work(DotSteps<5>(), rows);
          break;
        case 6:
          work(DotSteps<6>(), rows);
          break;
        default:
          work(DotSteps<kMaxBlockRows>(), rows);
      }
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
  float score_factors_[kMaxItemRows];        // of integer scores
  float weight_scales_[kMaxItemRows];        // of the chunk's integer weights
  int32_t score_offsets_[2 * kMaxItemRows];  // see DotRows
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
