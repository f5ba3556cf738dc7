// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// f32 rows to 8-bit codes and a scale, the same bits as float_formats.h.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_QUANTIZE_TO_8_BITS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_QUANTIZE_TO_8_BITS_INL_H_
#undef PAGED_KV_ATTENTION_QUANTIZE_TO_8_BITS_INL_H_
#else
#define PAGED_KV_ATTENTION_QUANTIZE_TO_8_BITS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attention/float_formats.h"
#include "attention/round_to_16_bits-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The largest finite magnitude of a row; 0 if there is none.
HWY_INLINE float LargestMagnitude(const float* from, size_t count) {
  const hn::CappedTag<float, 16> d;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  auto largest = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto magnitude = hn::Abs(hn::LoadU(d, from + i));
    // Not true of a NaN either.
    const auto finite = hn::Lt(magnitude, infinity);
    largest = hn::Max(largest, hn::IfThenElseZero(finite, magnitude));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) {
    if (std::isfinite(from[i])) result = std::max(result, std::abs(from[i]));
  }
  return result;
}

// e4m3 codes in the low bytes of the lanes.
struct E4m3Encoder {
  static uint8_t Scalar(float value) { return F32ToE4m3(value); }

  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Codes(D d, V value) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, value);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto sign = hn::ShiftRight<24>(hn::Xor(bits, magnitude));
    const V absolute = hn::BitCast(d, magnitude);

    const auto bias_change = hn::Set(du, (127 - 7) << 23);
    const auto normal =
        hn::Min(ShiftRightRounded<20>(du, hn::Sub(magnitude, bias_change)),
                hn::Set(du, 0x7E));
    // 2^14 + x has a last place of 2^-9, the unit of subnormals.
    const V unit = hn::Set(d, 0x1p14f);
    const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(absolute, unit)),
                                   hn::BitCast(du, unit));

    const auto is_subnormal = hn::Lt(absolute, hn::Set(d, 0x1p-6f));
    auto result =
        hn::IfThenElse(hn::RebindMask(du, is_subnormal), subnormal, normal);
    result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)),
                            hn::Set(du, 0x7F), result);
    return hn::Or(result, sign);
  }
};

// Two's complement in the low bytes of the lanes.
struct Int8Encoder {
  static uint8_t Scalar(float value) { return F32ToInt8(value); }

  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Codes(D d, V value) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    // NaN becomes +0 before the minimum, which targets define differently.
    const V number = hn::IfThenZeroElse(hn::IsNaN(value), value);
    const auto bits = hn::BitCast(du, number);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    // All ones for negative numbers.
    const auto sign =
        hn::BitCast(du, hn::BroadcastSignBit(hn::BitCast(di, bits)));
    const V absolute = hn::Min(hn::BitCast(d, magnitude), hn::Set(d, 127.0f));
    // 2^23 has a last place of 1.
    const V unit = hn::Set(d, 0x1p23f);
    const auto rounded = hn::Sub(hn::BitCast(du, hn::Add(absolute, unit)),
                                 hn::BitCast(du, unit));
    return hn::And(hn::Sub(hn::Xor(rounded, sign), sign), hn::Set(du, 0xFF));
  }
};

// Codes of from[i] / scale.
template <class Encoder>
HWY_INLINE void QuantizeRow(const float* HWY_RESTRICT from, size_t count,
                            float scale, uint8_t* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto divisor = hn::Set(d, scale);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto quotient = hn::Div(hn::LoadU(d, from + i), divisor);
    const auto codes = hn::BitCast(di, Encoder::Codes(d, quotient));
    // Not TruncateTo, which is wrong for AVX3_DL in Highway 1.0.3.
    hn::StoreU(hn::DemoteTo(d8, codes), d8, to + i);
  }
  for (; i < count; ++i) to[i] = Encoder::Scalar(from[i] / scale);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
