// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One chunk of keys for the rows that registers hold: score, softmax, sum up.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#undef PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#else
#define PAGED_KV_ATTENTION_ATTEND_ROWS_INL_H_
#endif

#include <cstddef>
#include <utility>

#include "attention/accumulate_values-inl.h"
#include "attention/online_softmax-inl.h"
#include "attention/row_block-inl.h"
#include "attention/score_keys-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Reader, size_t kRows>
struct RowSteps {
  static HWY_NOINLINE void Score(const ChunkView& chunk,
                                 const RowParameters& parameters,
                                 const RowBlock& rows) {
    ScoreRows<Reader, kRows>(chunk, parameters.head_dim, rows);
  }
  static HWY_NOINLINE void Accumulate(const ChunkView& chunk,
                                      const RowParameters& parameters,
                                      const RowBlock& rows) {
    AccumulateRows<Reader, kRows>(chunk, parameters, rows);
  }
};

// RowSteps for the number of rows of a block: 1 .. kMaxRegisterRows, or
// kWideRows.
template <class Reader>
struct RowStepTable {
  using ScoreFunction = decltype(&RowSteps<Reader, 1>::Score);
  using AccumulateFunction = decltype(&RowSteps<Reader, 1>::Accumulate);
  static constexpr std::make_index_sequence<kMaxRegisterRows> kAll{};

  static ScoreFunction Score(size_t num_rows) {
    if constexpr (kTakesWideBlocks<Reader>) {
      if (num_rows > kMaxRegisterRows)
        return RowSteps<Reader, kWideRows>::Score;
    }
    return ScoreUpToMax(num_rows, kAll);
  }
  static AccumulateFunction Accumulate(size_t num_rows) {
    if constexpr (kTakesWideBlocks<Reader>) {
      if (num_rows > kMaxRegisterRows) {
        return RowSteps<Reader, kWideRows>::Accumulate;
      }
    }
    return AccumulateUpToMax(num_rows, kAll);
  }

 private:
  template <size_t... kIndex>
  static ScoreFunction ScoreUpToMax(size_t num_rows,
                                    std::index_sequence<kIndex...>) {
    static constexpr ScoreFunction kFunctions[] = {
        RowSteps<Reader, kIndex + 1>::Score...};
    return kFunctions[num_rows - 1];
  }
  template <size_t... kIndex>
  static AccumulateFunction AccumulateUpToMax(size_t num_rows,
                                              std::index_sequence<kIndex...>) {
    static constexpr AccumulateFunction kFunctions[] = {
        RowSteps<Reader, kIndex + 1>::Accumulate...};
    return kFunctions[num_rows - 1];
  }
};

// One chunk of keys and values for some blocks of rows. All blocks go through
// the keys, then all through the values: each of the two fits the first-level
// cache, both do not. stage_values() is called before values are read.
template <class Reader, class StageValues>
HWY_INLINE void AttendRows(const ChunkView& chunk,
                           const RowParameters& parameters,
                           const RowBlock* blocks, size_t num_blocks,
                           const StageValues& stage_values) {
  using Table = RowStepTable<Reader>;
  for (size_t b = 0; b < num_blocks; ++b) {
    const RowBlock& rows = blocks[b];
    Table::Score(rows.num_rows)(chunk, parameters, rows);
    for (size_t r = 0; r < rows.num_rows; ++r) {
      float* scores = rows.scores + r * kChunkTokens;
      CapAndMask(rows.first_lane[r], rows.last_lane[r],
                 parameters.soft_cap_log2e, scores);
      UpdateSoftmax<Reader::kHasScales>(
          parameters.v_head_dim, scores, rows.references + r,
          rows.lane_sums + r * kScoreLanes,
          rows.outputs + r * parameters.output_stride, chunk.value_scales);
    }
  }
  stage_values();
  for (size_t b = 0; b < num_blocks; ++b) {
    Table::Accumulate(blocks[b].num_rows)(chunk, parameters, blocks[b]);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
