// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outputs: weights times the values of a chunk.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ACCUMULATE_VALUES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ACCUMULATE_VALUES_INL_H_
#undef PAGED_KV_ATTENTION_ACCUMULATE_VALUES_INL_H_
#else
#define PAGED_KV_ATTENTION_ACCUMULATE_VALUES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/kv_reader-inl.h"
#include "attention/row_block-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// sums[row][column] += weight[row] * value[column], for one key; `weights` are
// those of the key. Pairs of vectors may be its even and its odd columns.
template <class Reader, size_t kRows, size_t kColumns, class D>
HWY_INLINE void AddKey(D d, const uint8_t* from,
                       const float* HWY_RESTRICT weights,
                       hn::Vec<D> (&sums)[kRows][kColumns]) {
  hn::Vec<D> values[kColumns];
  constexpr size_t kBytes = hn::MaxLanes(D()) * Reader::kElementBytes;
  if constexpr (Reader::kPairsValues && kColumns % 2 == 0) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; c += 2) {
      values[c] = Reader::template KeyVector<0>(d, from + c * kBytes, 0);
      values[c + 1] = Reader::template KeyVector<1>(d, from + c * kBytes, 0);
    }
  } else {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      values[c] = Reader::ValueVector(d, from + c * kBytes);
    }
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    const auto weight = hn::Set(d, weights[r * kChunkTokens]);
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      sums[r][c] = hn::MulAdd(weight, values[c], sums[r][c]);
    }
  }
}

// outputs[row] += sum over lanes of weight[row][lane] * V[lane], for kColumns
// vectors of columns from `column` on.
template <class Reader, size_t kRows, size_t kColumns, class D>
HWY_INLINE void AccumulateColumns(D d, const ChunkView& chunk, size_t column,
                                  const float* HWY_RESTRICT weights,
                                  float* HWY_RESTRICT outputs,
                                  size_t output_stride,
                                  PrefetchCursor* cursor) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  constexpr size_t kSums = kChains<Reader, kRows>;
  hn::Vec<D> sums[kSums][kRows][kColumns];
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      sums[0][r][c] =
          hn::LoadU(d, outputs + r * output_stride + column + c * kLanes);
      if constexpr (kSums == 2) sums[1][r][c] = hn::Zero(d);
    }
  }
  const size_t offset = column * Reader::kElementBytes;
  constexpr size_t kBytes = kColumns * kLanes * Reader::kStoredBytes;
  constexpr size_t kLines = (kBytes + 63) / 64;
  // Several passes over a line take turns in asking for lines, so that these
  // are spread over all of them.
  constexpr size_t kPasses = kBytes < 64 ? 64 / kBytes : 1;
  constexpr size_t kKeys = kPasses == 1 ? kSums : 2 * kPasses;
  PrefetchCursor prefetch = *cursor;
  const uint8_t* const* values = chunk.values;
  size_t j = chunk.begin;
  while (j + kKeys <= chunk.end) {
    prefetch.Prefetch<kKeys / kPasses * kLines>();
    HWY_UNROLL(1)
    for (const size_t end = j + kKeys; j < end; j += kSums) {
      AddKey<Reader>(d, values[j] + offset, weights + j, sums[0]);
      if constexpr (kSums == 2) {
        AddKey<Reader>(d, values[j + 1] + offset, weights + j + 1, sums[1]);
      }
    }
  }
  for (; j < chunk.end; ++j) {
    AddKey<Reader>(d, values[j] + offset, weights + j, sums[0]);
  }
  *cursor = prefetch;
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < kColumns; ++c) {
      auto sum = sums[0][r][c];
      if constexpr (kSums == 2) sum = hn::Add(sum, sums[1][r][c]);
      hn::StoreU(sum, d, outputs + r * output_stride + column + c * kLanes);
    }
  }
}

// Adds up the values of the chunk's lanes for kRows rows.
template <class Reader, size_t kRows>
HWY_INLINE void AccumulateRows(const ChunkView& chunk,
                               const RowParameters& parameters,
                               const RowBlock& rows) {
  // V rows are read without a byte beyond them: whole groups of vectors, pairs,
  // single ones, and 8 columns where vectors are longer.
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 8> d8;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr size_t kColumns = kColumnsAtOnce<kRows>;
  const size_t columns = parameters.v_head_dim;
  const size_t stride = parameters.output_stride;
  size_t c = 0;
  for (; c + kColumns * kLanes <= columns; c += kColumns * kLanes) {
    AccumulateColumns<Reader, kRows, kColumns>(
        d, chunk, c, rows.scores, rows.outputs, stride, rows.prefetch);
  }
  if constexpr (kColumns > 2) {
    for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
      AccumulateColumns<Reader, kRows, 2>(d, chunk, c, rows.scores,
                                          rows.outputs, stride, rows.prefetch);
    }
  }
  for (; c + kLanes <= columns; c += kLanes) {
    AccumulateColumns<Reader, kRows, 1>(d, chunk, c, rows.scores, rows.outputs,
                                        stride, rows.prefetch);
  }
  if constexpr (kLanes > 8) {
    if (c < columns) {
      AccumulateColumns<Reader, kRows, 1>(d8, chunk, c, rows.scores,
                                          rows.outputs, stride, rows.prefetch);
    }
  }
}

// Puts the columns of a row that AccumulateRows() has summed up in their order.
template <class Reader>
HWY_INLINE void SortColumns(size_t columns, float* HWY_RESTRICT output) {
  if constexpr (Reader::kPairsValues) {
    const hn::CappedTag<float, 16> d;
    constexpr size_t kLanes = hn::MaxLanes(d);
    for (size_t c = 0; c + 2 * kLanes <= columns; c += 2 * kLanes) {
      const auto even = hn::LoadU(d, output + c);
      const auto odd = hn::LoadU(d, output + c + kLanes);
      hn::StoreInterleaved2(even, odd, d, output + c);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
