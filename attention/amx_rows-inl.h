// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of queries, weights and outputs as tiles of AMX hold them.
//
// Products of tiles take bf16. Queries and softmax weights are f32, so each is
// cut into two bf16 numbers, the nearest one and the rest, of which at most
// 2^-16 of the whole is lost, and both are multiplied. Products of tiles take
// subnormal numbers for zeros.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_AMX_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_AMX_ROWS_INL_H_
#undef PAGED_KV_ATTENTION_AMX_ROWS_INL_H_
#else
#define PAGED_KV_ATTENTION_AMX_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/amx_elements-inl.h"
#include "attention/attend_internal.h"
#include "attention/online_softmax-inl.h"
#include "attention/round_to_16_bits-inl.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As many scores as a tile has columns.
using AmxTag = hn::FixedTag<float, kAmxColumns>;

// The two parts of a query as rows of the tiles at `high` and `low`, one tile
// per step of kAmxTerms dims, in the order of Elements. False if the low parts
// are all zero, as are those of bf16 values.
template <class Elements>
HWY_INLINE bool PackQuery(const float* query, size_t head_dim, uint8_t* high,
                          uint8_t* low) {
  const AmxTag d;
  const hn::Rebind<uint16_t, AmxTag> d16;
  bool any_low = false;
  for (size_t i = 0; i < head_dim; i += kAmxColumns) {
    alignas(64) float terms[kAmxColumns];
    for (size_t j = 0; j < kAmxColumns; ++j) {
      terms[j] = query[i + Elements::KeyTerm(j)];
    }
    const auto value = hn::Load(d, terms);
    const auto bits = Bf16Bits(d, value);
    const auto left = hn::Sub(value, hn::BitCast(d, hn::ShiftLeft<16>(bits)));
    any_low |= !hn::AllTrue(d, hn::Eq(left, hn::Zero(d)));
    const size_t offset =
        i / kAmxTerms * kAmxTileBytes + i % kAmxTerms * sizeof(uint16_t);
    hn::StoreU(hn::TruncateTo(d16, bits), d16,
               reinterpret_cast<uint16_t*>(high + offset));
    hn::StoreU(hn::TruncateTo(d16, Bf16Bits(d, left)), d16,
               reinterpret_cast<uint16_t*>(low + offset));
  }
  return any_low;
}

// The weights of one row, all lanes of a chunk, relative to its reference, and
// their part of its sums. Otherwise as UpdateSoftmax().
HWY_INLINE void LoadWeights(const float* scores, size_t columns,
                            float* reference, float* lane_sums, float* output,
                            hn::Vec<AmxTag> (&w)[kChunkTokens / kAmxColumns]) {
  const AmxTag d;
  static_assert(kChunkTokens == 4 * kAmxColumns);
  for (size_t i = 0; i < 4; ++i) w[i] = hn::Load(d, scores + i * kAmxColumns);
  const auto max = hn::Max(hn::Max(w[0], w[1]), hn::Max(w[2], w[3]));
  const auto m =
      hn::Set(d, UpdateReference(max, columns, reference, lane_sums, output));
  for (size_t i = 0; i < 4; ++i) w[i] = Exp2(d, hn::Sub(w[i], m));
  const auto sum = hn::Add(hn::Add(w[0], w[1]), hn::Add(w[2], w[3]));
  hn::Store(hn::Add(hn::Load(d, lane_sums), sum), d, lane_sums);
}

// Makes the scales of values a part of the weights.
HWY_INLINE void ScaleWeights(const float* value_scales,
                             hn::Vec<AmxTag> (&w)[kChunkTokens / kAmxColumns]) {
  const AmxTag d;
  for (size_t i = 0; i < kChunkTokens / kAmxColumns; ++i) {
    w[i] = hn::Mul(w[i], hn::LoadU(d, value_scales + i * kAmxColumns));
  }
}

// The two parts of the weights of kAmxTerms tokens as rows of tiles. The pairs
// of their terms are tokens i and i + 16, so that nothing crosses lanes.
HWY_INLINE void StoreWeights(hn::Vec<AmxTag> a, hn::Vec<AmxTag> b,
                             uint8_t* high, uint8_t* low) {
  const AmxTag d;
  const hn::RebindToUnsigned<AmxTag> du;
  const auto upper = hn::Set(du, 0xFFFF0000u);
  // To nearest; ties away from zero, which takes one instruction.
  const auto half = hn::Set(du, 0x8000u);
  const auto pairs = [&](hn::Vec<AmxTag> x, hn::Vec<AmxTag> y) HWY_ATTR {
    const auto rx = hn::Add(hn::BitCast(du, x), half);
    const auto ry = hn::Add(hn::BitCast(du, y), half);
    return hn::OrAnd(hn::ShiftRight<16>(rx), ry, upper);
  };
  const auto whole = pairs(a, b);
  const auto a_left = hn::Sub(a, hn::BitCast(d, hn::ShiftLeft<16>(whole)));
  const auto b_left = hn::Sub(b, hn::BitCast(d, hn::And(whole, upper)));
  hn::Store(whole, du, reinterpret_cast<uint32_t*>(high));
  hn::Store(pairs(a_left, b_left), du, reinterpret_cast<uint32_t*>(low));
}

// From the order of columns that Elements::ValuePair() leaves to that of dims.
template <class Elements>
void SortColumns(size_t v_head_dim, float* output) {
  float sorted[kMaxHeadDim];
  for (size_t c = 0; c < v_head_dim; ++c) {
    const size_t unit = c / Elements::kUnitColumns * Elements::kUnitColumns;
    const size_t tile = c % Elements::kUnitColumns / kAmxColumns;
    sorted[unit + Elements::UnitColumn(tile, c % kAmxColumns)] = output[c];
  }
  std::copy_n(sorted, v_head_dim, output);
}

// V rows of a chunk; zeros for lanes that are not the item's.
class AmxValueRows {
 public:
  explicit AmxValueRows(const KeyChunk& chunk) : rows(chunk.v) {
    if (chunk.begin == 0 && chunk.end == kChunkTokens) return;
    alignas(64) static constexpr uint8_t kZeros[kMaxHeadDim * 2] = {};
    std::copy_n(chunk.v, kChunkTokens, copies_);
    std::fill(copies_, copies_ + chunk.begin, kZeros);
    std::fill(copies_ + chunk.end, copies_ + kChunkTokens, kZeros);
    rows = copies_;
  }
  AmxValueRows(const AmxValueRows&) = delete;
  AmxValueRows& operator=(const AmxValueRows&) = delete;

  const uint8_t* const* rows;

 private:
  const uint8_t* copies_[kChunkTokens];
};

// The scales of a chunk as they lie in its page, or copied if they lie in
// several or some lanes have none; null for types without scales.
template <bool kHasScales>
class AmxScales {
 public:
  explicit AmxScales(const KeyChunk& chunk) {
    const KeyChunk::ScaleRun& run = chunk.scale_runs[0];
    if (run.begin == 0 && run.end == kChunkTokens) {
      keys = reinterpret_cast<const float*>(run.k);
      values = reinterpret_cast<const float*>(run.v);
    } else {
      CopyScales(chunk, key_copies_, value_copies_);
      keys = key_copies_;
      values = value_copies_;
    }
  }
  AmxScales(const AmxScales&) = delete;
  AmxScales& operator=(const AmxScales&) = delete;

  const float* keys;
  const float* values;

 private:
  float key_copies_[kChunkTokens];
  float value_copies_[kChunkTokens];
};

template <>
class AmxScales<false> {
 public:
  explicit AmxScales(const KeyChunk& /*chunk*/) {}

  static constexpr const float* keys = nullptr;
  static constexpr const float* values = nullptr;
};

// Scores of one row, all lanes of a chunk, times the factor of the call and the
// scales of keys if there are any.
template <bool kHasScales>
HWY_INLINE void ScaleScores(float score_scale, const float* key_scales,
                            float* scores) {
  const AmxTag d;
  const auto scale = hn::Set(d, score_scale);
  for (size_t j = 0; j < kChunkTokens; j += kAmxColumns) {
    auto score = hn::Mul(hn::Load(d, scores + j), scale);
    if constexpr (kHasScales) {
      score = hn::Mul(score, hn::LoadU(d, key_scales + j));
    }
    hn::Store(score, d, scores + j);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
