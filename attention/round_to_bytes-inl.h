// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From f32 to integers of 16 bits with one scale, cut into bytes for tiles.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ROUND_TO_BYTES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ROUND_TO_BYTES_INL_H_
#undef PAGED_KV_ATTENTION_ROUND_TO_BYTES_INL_H_
#else
#define PAGED_KV_ATTENTION_ROUND_TO_BYTES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "attention/amx_rows-inl.h"
#include "attention/attend_internal.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The largest integers: 127 and 127 as signed bytes, 255 and 255 as unsigned
// ones.
inline constexpr float kLargestQuery = 127 * 256 + 127;
inline constexpr float kLargestWeight = 255 * 256 + 255;

// What `largest` stands for if it is to stand for `max`, and its inverse. Below
// a limit, all become 0: their inverse would be infinite. If not all values
// are finite, what they scale becomes NaN.
struct IntegerScale {
  HWY_INLINE IntegerScale(float max, bool all_finite, float largest) {
    constexpr float kSmallest = 1e-33f;
    if (HWY_UNLIKELY(!all_finite)) {
      scale = std::numeric_limits<float>::quiet_NaN();
    } else if (max > kSmallest) {
      scale = max / largest;
      inverse = largest / max;
    }
  }

  float scale = 0.0f;
  float inverse = 0.0f;
};

// Weights, none negative, of one row and all tokens of a chunk as rows of
// bytes: quad i holds tokens i, i + 16, i + 32 and i + 48, so that nothing
// crosses lanes. Returns the scale.
HWY_INLINE float StoreWeightBytes(
    const hn::Vec<AmxTag> (&w)[kChunkTokens / kAmxColumns], uint8_t* upper,
    uint8_t* lower) {
  const AmxTag d;
  const hn::RebindToUnsigned<AmxTag> du;
  static_assert(kChunkTokens == 4 * kAmxColumns);
  const auto max = hn::Max(hn::Max(w[0], w[1]), hn::Max(w[2], w[3]));
  // NaN if one of them is not finite.
  const auto sum = hn::Add(hn::Add(w[0], w[1]), hn::Add(w[2], w[3]));
  const auto none = hn::Sub(sum, sum);
  const IntegerScale scale(hn::GetLane(hn::MaxOfLanes(d, max)),
                           hn::AllTrue(d, hn::Eq(none, none)), kLargestWeight);
  const auto inverse = hn::Set(d, scale.inverse);
  const auto round = [&](size_t i) HWY_ATTR {
    return hn::BitCast(du, hn::NearestInt(hn::Mul(w[i], inverse)));
  };
  const auto w0 = round(0), w1 = round(1), w2 = round(2), w3 = round(3);
  const auto low = hn::Set(du, 0xFFu);
  const auto second = hn::Set(du, 0xFF00u);
  const auto third = hn::Set(du, 0xFF0000u);
  const auto upper01 = hn::OrAnd(hn::ShiftRight<8>(w0), w1, second);
  const auto upper23 = hn::OrAnd(hn::ShiftLeft<16>(hn::And(w3, second)),
                                 hn::ShiftLeft<8>(w2), third);
  const auto lower01 = hn::OrAnd(hn::ShiftLeft<8>(hn::And(w1, low)), w0, low);
  const auto lower23 =
      hn::OrAnd(hn::ShiftLeft<24>(w3), hn::ShiftLeft<16>(w2), third);
  hn::Store(hn::Or(upper01, upper23), du, reinterpret_cast<uint32_t*>(upper));
  hn::Store(hn::Or(lower01, lower23), du, reinterpret_cast<uint32_t*>(lower));
  return scale.scale;
}

struct RoundedQuery {
  float scale = 0.0f;
  int32_t upper_sum = 0;
  int32_t lower_sum = 0;
};

// A query as integers of 16 bits, each an upper byte with a sign and a lower
// byte with one: calls store(dim, upper, lower) for the 16 bytes from each 16th
// dim on; returns the scale and the sums of the bytes.
template <class Store>
HWY_INLINE RoundedQuery RoundQuery(const float* query, size_t head_dim,
                                   const Store& store) {
  const AmxTag d;
  const hn::RebindToSigned<AmxTag> di;
  const hn::Rebind<int8_t, AmxTag> d8;
  auto max = hn::Zero(d);
  auto finite = hn::Zero(d);
  for (size_t i = 0; i < head_dim; i += kAmxColumns) {
    const auto value = hn::LoadU(d, query + i);
    max = hn::Max(max, hn::Abs(value));
    finite = hn::Add(finite, hn::Sub(value, value));  // or NaN
  }
  const IntegerScale scale(hn::GetLane(hn::MaxOfLanes(d, max)),
                           hn::AllTrue(d, hn::Eq(finite, finite)),
                           kLargestQuery);
  auto upper_sum = hn::Zero(di);
  auto lower_sum = hn::Zero(di);
  for (size_t i = 0; i < head_dim; i += kAmxColumns) {
    const auto value = hn::NearestInt(
        hn::Mul(hn::LoadU(d, query + i), hn::Set(d, scale.inverse)));
    const auto upper = hn::ShiftRight<8>(hn::Add(value, hn::Set(di, 128)));
    const auto lower = hn::Sub(value, hn::ShiftLeft<8>(upper));
    upper_sum = hn::Add(upper_sum, upper);
    lower_sum = hn::Add(lower_sum, lower);
    int8_t bytes[2][kAmxColumns];
    hn::StoreU(hn::DemoteTo(d8, upper), d8, bytes[0]);
    hn::StoreU(hn::DemoteTo(d8, lower), d8, bytes[1]);
    store(i, bytes[0], bytes[1]);
  }
  return {scale.scale, hn::GetLane(hn::SumOfLanes(di, upper_sum)),
          hn::GetLane(hn::SumOfLanes(di, lower_sum))};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
