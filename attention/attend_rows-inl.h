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

#include "attention/accumulate_values-inl.h"
#include "attention/online_softmax-inl.h"
#include "attention/row_block-inl.h"
#include "attention/score_keys-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One chunk of keys and values for kRows rows.
template <class Reader, size_t kRows>
HWY_NOINLINE void AttendRows(const ChunkView& chunk,
                             const RowParameters& parameters,
                             const RowBlock& rows) {
  ScoreChunk<Reader, kRows>(chunk, rows.queries, parameters.head_dim,
                            rows.scores, rows.prefetch);
  for (size_t r = 0; r < kRows; ++r) {
    float* scores = rows.scores + r * kChunkTokens;
    CapAndMask(rows.first_lane[r], rows.last_lane[r], parameters.soft_cap_log2e,
               scores);
    UpdateSoftmax<Reader::kHasScales>(
        parameters.v_head_dim, scores, rows.references + r,
        rows.lane_sums + r * kScoreLanes,
        rows.outputs + r * parameters.output_stride, chunk.value_scales);
  }
  AccumulateChunk<Reader, kRows>(chunk, parameters, rows.scores, rows.outputs,
                                 rows.prefetch);
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
