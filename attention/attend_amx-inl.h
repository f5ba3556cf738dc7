// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One task on the tile registers of Intel AMX. Keys in tiles are multiplied as
// they lie in their pages: 16 pairs of dims of 16 tokens are one tile.
//
// Products of tiles take bf16. Queries and softmax weights are f32, so each is
// cut into two bf16 numbers, its upper bits and the rest (at most 2^-16 of it
// is lost), and both are multiplied. Queries that are bf16 values to begin with
// have no second part. Two tiles of rows are multiplied with two of keys or
// values at a time, so that loads keep up. Products of tiles take subnormal
// numbers for zeros.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_AMX_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/amx_tile_internal.h"
#include "attention/attend_internal.h"
#include "attention/chunk_walk_internal.h"
#include "attention/exp2-inl.h"
#include "attention/gather_keys-inl.h"
#include "attention/item_rows_internal.h"
#include "attention/online_softmax-inl.h"
#include "attention/round_to_16_bits-inl.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

class AmxItemKernel {
 public:
  AmxItemKernel(const AttendCall& call, const AttendTask& task,
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
        soft_cap_log2e_(call.soft_cap * 1.44269504088896341f) {}

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
  static constexpr size_t kPairsPerTile = kAmxTileRows;
  static constexpr size_t kDimsPerStep = 2 * kPairsPerTile;
  static constexpr size_t kTokensPerStep = 2 * kPairsPerTile;
  static constexpr size_t kSteps = kChunkTokens / kTokensPerStep;
  static constexpr size_t kColumns = 16;  // of a tile of sums
  static constexpr size_t kPairRows = 2 * kAmxTileRows;
  static constexpr size_t kLanes = 16;
  using Tag = hn::FixedTag<float, kLanes>;

  // Parts of the worker's scratch.
  struct Scratch {
    Scratch(const BlockShape& shape, float* base) {
      const ScratchLayout layout(shape);
      queries = reinterpret_cast<uint8_t*>(base + layout.queries);
      keys = reinterpret_cast<uint8_t*>(base + layout.gathered_keys);
      values = reinterpret_cast<uint8_t*>(base + layout.f32_values);
      scores = base + layout.scores;
      weights = reinterpret_cast<uint8_t*>(base + layout.weights);
      outputs = base + layout.outputs;
      references = base + layout.references;
      sums = base + layout.sums;
      lane_sums = base + layout.lane_sums;
    }

    uint8_t* queries;   // tiles [row tile][part][step]
    uint8_t* keys;      // tiles of keys in plain order
    uint8_t* values;    // tiles [step][column tile]
    float* scores;      // [32, kChunkTokens] of a pair of row tiles
    uint8_t* weights;   // tiles [row tile][step][part]
    float* outputs;     // [rows, stride], see SortColumns()
    float* references;  // [rows]
    float* sums;        // [rows]
    float* lane_sums;   // [rows, kLanes], what adds up to `sums`
  };

  size_t steps() const { return head_dim_ / kDimsPerStep; }
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
    for (uint32_t r = 0; r < rows_.size(); ++r) PackQuery(r);
    std::fill_n(scratch_.references, rows_.size(),
                -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.lane_sums, padded_rows * kLanes, 0.0f);
    std::fill_n(scratch_.outputs, padded_rows * stride_, 0.0f);
  }

  void PackQuery(uint32_t r) {
    const Tag d;
    const hn::Rebind<uint16_t, Tag> d16;
    const float* query = rows_.Query(r);
    const size_t row = r % kAmxTileRows * kAmxTileRowBytes;
    uint8_t* high_tiles = QueryTile(r / kAmxTileRows, 0) + row;
    uint8_t* low_tiles = QueryTile(r / kAmxTileRows, 1) + row;
    for (size_t i = 0; i < head_dim_; i += kLanes) {
      const auto value = hn::LoadU(d, query + i);
      const auto high = Bf16Bits(d, value);
      const auto left = hn::Sub(value, hn::BitCast(d, hn::ShiftLeft<16>(high)));
      has_low_queries_ |= !hn::AllTrue(d, hn::Eq(left, hn::Zero(d)));
      const size_t offset = i / kDimsPerStep * kAmxTileBytes +
                            i % kDimsPerStep * sizeof(uint16_t);
      hn::StoreU(hn::TruncateTo(d16, high), d16,
                 reinterpret_cast<uint16_t*>(high_tiles + offset));
      hn::StoreU(hn::TruncateTo(d16, Bf16Bits(d, left)), d16,
                 reinterpret_cast<uint16_t*>(low_tiles + offset));
    }
  }

  void AttendChunk(const KeyChunk& chunk) {
    const uint8_t* tiles[kChunkTiles];
    std::copy_n(chunk.k, kChunkTiles, tiles);
    if (plain_) {
      GatherKeys(chunk, head_dim_ * sizeof(uint16_t), scratch_.keys, tiles,
                 &prefetch_);
      const size_t filled = (chunk.end + kTileTokens - 1) / kTileTokens;
      std::fill(tiles + filled, tiles + kChunkTiles, tiles[0]);
    }
    const size_t steps = (chunk.end + kTokensPerStep - 1) / kTokensPerStep;
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
      ScaleScores(scores);
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

  void ScaleScores(float* scores) const {
    const Tag d;
    const auto scale = hn::Set(d, call_.score_scale);
    for (size_t j = 0; j < kChunkTokens; j += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, scores + j), scale), d, scores + j);
    }
  }

  // From the scores of row r to its weights, in two parts.
  void WeighRow(uint32_t r, const float* scores) {
    const Tag d;
    const auto s0 = hn::Load(d, scores);
    const auto s1 = hn::Load(d, scores + kLanes);
    const auto s2 = hn::Load(d, scores + 2 * kLanes);
    const auto s3 = hn::Load(d, scores + 3 * kLanes);
    const auto max = hn::Max(hn::Max(s0, s1), hn::Max(s2, s3));
    float* sums = scratch_.lane_sums + r * kLanes;
    const auto limit = hn::Set(d, scratch_.references[r] + kReferenceSlack);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(max, limit)))) {
      RaiseReference(hn::GetLane(hn::MaxOfLanes(d, max)), v_head_dim_,
                     scratch_.references + r, sums,
                     scratch_.outputs + r * stride_);
    }
    // Nothing seen yet: any finite reference gives the weights 0.
    const float reference = scratch_.references[r];
    const auto m = hn::Set(d, std::isinf(reference) ? 0.0f : reference);
    const auto w0 = Exp2(d, hn::Sub(s0, m));
    const auto w1 = Exp2(d, hn::Sub(s1, m));
    const auto w2 = Exp2(d, hn::Sub(s2, m));
    const auto w3 = Exp2(d, hn::Sub(s3, m));
    const auto sum = hn::Add(hn::Add(w0, w1), hn::Add(w2, w3));
    hn::Store(hn::Add(hn::Load(d, sums), sum), d, sums);
    StoreWeights(r, 0, w0, w1);
    StoreWeights(r, 1, w2, w3);
  }

  // Weights of the tokens of one step.
  void StoreWeights(uint32_t r, size_t step, hn::Vec<Tag> a, hn::Vec<Tag> b) {
    const Tag d;
    const hn::Repartition<uint16_t, Tag> d16;
    const auto upper =
        hn::BitCast(d, hn::Set(hn::RebindToUnsigned<Tag>(), 0xFFFF0000u));
    const auto a_high = hn::And(a, upper);
    const auto b_high = hn::And(b, upper);
    const auto high =
        hn::ConcatOdd(d16, hn::BitCast(d16, b_high), hn::BitCast(d16, a_high));
    const auto low = hn::ConcatOdd(d16, hn::BitCast(d16, hn::Sub(b, b_high)),
                                   hn::BitCast(d16, hn::Sub(a, a_high)));
    uint8_t* to = WeightTile(r / kAmxTileRows, step, 0) +
                  r % kAmxTileRows * kAmxTileRowBytes;
    hn::Store(high, d16, reinterpret_cast<uint16_t*>(to));
    hn::Store(low, d16, reinterpret_cast<uint16_t*>(to + kAmxTileBytes));
  }

  // Tiles of values: pairs of tokens side by side, as products of tiles take
  // them. Columns come out of order, see SortColumns(). Tokens that are not the
  // item's become zeros.
  void InterleaveValues(const KeyChunk& chunk, size_t steps) {
    alignas(64) static constexpr uint8_t kZeros[kMaxHeadDim * 2] = {};
    const hn::FixedTag<uint16_t, 32> d16;
    const size_t column_tiles = v_head_dim_ / kColumns;
    const uint8_t* rows[kChunkTokens];
    for (size_t j = 0; j < kChunkTokens; ++j) {
      rows[j] = j >= chunk.begin && j < chunk.end ? chunk.v[j] : kZeros;
    }
    for (size_t j = 0; j < steps * kTokensPerStep; j += 2) {
      uint8_t* to = scratch_.values +
                    j / kTokensPerStep * column_tiles * kAmxTileBytes +
                    j % kTokensPerStep / 2 * kAmxTileRowBytes;
      for (size_t c = 0; c < v_head_dim_; c += 32) {
        prefetch_.Prefetch<2>();
        const auto a =
            hn::LoadU(d16, reinterpret_cast<const uint16_t*>(rows[j]) + c);
        const auto b =
            hn::LoadU(d16, reinterpret_cast<const uint16_t*>(rows[j + 1]) + c);
        uint8_t* pair = to + c / kColumns * kAmxTileBytes;
        hn::Store(hn::InterleaveLower(d16, a, b), d16,
                  reinterpret_cast<uint16_t*>(pair));
        hn::Store(hn::InterleaveUpper(d16, a, b), d16,
                  reinterpret_cast<uint16_t*>(pair + kAmxTileBytes));
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
    const Tag d;
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      SortColumns(scratch_.outputs + r * stride_);
      const auto sums = hn::Load(d, scratch_.lane_sums + r * kLanes);
      scratch_.sums[r] = hn::GetLane(hn::SumOfLanes(d, sums));
    }
    rows_.Write(scratch_.outputs, scratch_.references, scratch_.sums);
  }

  // Undoes the order of InterleaveLower and InterleaveUpper, which take the
  // first or last four of each 8 dims.
  void SortColumns(float* output) const {
    float sorted[kMaxHeadDim];
    for (size_t c = 0; c < v_head_dim_; ++c) {
      const size_t tile = c / 32 * 2 + c % 8 / 4;
      sorted[c] = output[tile * kColumns + c % 32 / 8 * 4 + c % 4];
    }
    std::copy_n(sorted, v_head_dim_, output);
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
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
