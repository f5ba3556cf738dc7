// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From the scores of one row to weights, with a running reference and sum
// (Milakov & Gimelshein 2018, arXiv:1805.02867).

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ONLINE_SOFTMAX_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ONLINE_SOFTMAX_INL_H_
#undef PAGED_KV_ATTENTION_ONLINE_SOFTMAX_INL_H_
#else
#define PAGED_KV_ATTENTION_ONLINE_SOFTMAX_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

#include "attention/exp2-inl.h"
#include "attention/row_block-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kLog2e = std::numbers::log2e_v<float>;

// Caps the scores of one row, all lanes of a chunk, and takes away the keys
// that it does not see. What lies in unseen lanes, NaN included, is replaced,
// never multiplied.
HWY_INLINE void CapAndMask(uint32_t first_lane, uint32_t last_lane,
                           float soft_cap_log2e, float* HWY_RESTRICT scores) {
  const ScoreTag d;
  if (soft_cap_log2e != 0.0f) {
    const auto cap = hn::Set(d, soft_cap_log2e);
    for (size_t j = 0; j < kChunkTokens; j += kScoreLanes) {
      const auto s = hn::LoadU(d, scores + j);
      hn::StoreU(hn::Mul(cap, hn::Tanh(d, s)), d, scores + j);
    }
  }
  if (first_lane == 0 && last_lane == kChunkTokens) return;
  const auto unseen = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto first = hn::Set(d, static_cast<float>(first_lane));
  const auto last = hn::Set(d, static_cast<float>(last_lane));
  for (size_t j = 0; j < kChunkTokens; j += kScoreLanes) {
    const auto lane = hn::Iota(d, static_cast<float>(j));
    const auto seen = hn::And(hn::Ge(lane, first), hn::Lt(lane, last));
    const auto s = hn::LoadU(d, scores + j);
    hn::StoreU(hn::IfThenElse(seen, s, unseen), d, scores + j);
  }
}

// How much a score may exceed the reference of its row, log2. Weights are below
// 2^8 then.
inline constexpr float kReferenceSlack = 8.0f;

// Replaces a row's reference, its running maximum or an earlier one; what was
// summed before shrinks.
HWY_NOINLINE inline void RaiseReference(float max, size_t columns,
                                        float* reference, float* lane_sums,
                                        float* output) {
  const ScoreTag d;
  const auto shrink = Exp2(d, hn::Set(d, *reference - max));  // 0 at first
  *reference = max;
  hn::StoreU(hn::Mul(shrink, hn::LoadU(d, lane_sums)), d, lane_sums);
  const hn::CappedTag<float, 8> d8;  // head dims are multiples of 8
  const auto factor = hn::Set(d8, hn::GetLane(shrink));
  for (size_t c = 0; c < columns; c += hn::Lanes(d8)) {
    hn::StoreU(hn::Mul(factor, hn::LoadU(d8, output + c)), d8, output + c);
  }
}

// What to subtract from the scores of a row before they become weights: the
// row's reference, replaced if `max`, the lanes' largest scores of a chunk,
// outgrows it by far. `columns` of the output shrink then.
template <class V>
HWY_INLINE float UpdateReference(V max, size_t columns,
                                 float* HWY_RESTRICT reference,
                                 float* HWY_RESTRICT lane_sums,
                                 float* HWY_RESTRICT output) {
  const ScoreTag d;
  const auto limit = hn::Set(d, *reference + kReferenceSlack);
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(max, limit)))) {
    RaiseReference(hn::GetLane(hn::MaxOfLanes(d, max)), columns, reference,
                   lane_sums, output);
  }
  // Nothing seen yet: any finite reference gives the weights 0.
  const bool none = std::isinf(*reference) && *reference < 0;
  return none ? 0.0f : *reference;
}

// Turns one row's scores, all lanes of a chunk, into weights relative to the
// row's reference. That need not be the running maximum: only one that is
// outgrown by far is replaced, which is rare after the first chunks. With
// scales, those of the values are part of the weights but not of the sum.
template <bool kHasScales = false>
HWY_INLINE void UpdateSoftmax(size_t v_head_dim, float* HWY_RESTRICT scores,
                              float* HWY_RESTRICT reference,
                              float* HWY_RESTRICT lane_sums,
                              float* HWY_RESTRICT output,
                              const float* HWY_RESTRICT scales = nullptr) {
  const ScoreTag d;
  auto max = hn::LoadU(d, scores);
  for (size_t j = kScoreLanes; j < kChunkTokens; j += kScoreLanes) {
    max = hn::Max(max, hn::LoadU(d, scores + j));
  }
  const auto subtrahend = hn::Set(
      d, UpdateReference(max, v_head_dim, reference, lane_sums, output));
  auto sum = hn::LoadU(d, lane_sums);
  for (size_t j = 0; j < kChunkTokens; j += kScoreLanes) {
    auto weight = Exp2(d, hn::Sub(hn::LoadU(d, scores + j), subtrahend));
    sum = hn::Add(sum, weight);
    if constexpr (kHasScales) {
      weight = hn::Mul(weight, hn::LoadU(d, scales + j));
    }
    hn::StoreU(weight, d, scores + j);
  }
  hn::StoreU(sum, d, lane_sums);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
