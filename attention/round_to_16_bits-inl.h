// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// f32 to the 16-bit formats, the same bits as float_formats.h. Highway 1.0 has
// conversions of its own, but truncates to bf16, and to f16 without F16C.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_ROUND_TO_16_BITS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_ROUND_TO_16_BITS_INL_H_
#undef PAGED_KV_ATTENTION_ROUND_TO_16_BITS_INL_H_
#else
#define PAGED_KV_ATTENTION_ROUND_TO_16_BITS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/float_formats.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Drops the low kBits bits, rounding to nearest, ties to even.
template <int kBits, class DU, class VU = hn::Vec<DU>>
HWY_INLINE VU ShiftRightRounded(DU du, VU value) {
  const VU odd = hn::And(hn::ShiftRight<kBits>(value), hn::Set(du, 1));
  const VU below_half = hn::Set(du, (1u << (kBits - 1)) - 1);
  return hn::ShiftRight<kBits>(hn::Add(value, hn::Add(below_half, odd)));
}

// bf16 bits in the low halves of the lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Bf16Bits(D /*d*/, V value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  return hn::IfThenElse(is_nan, quiet, ShiftRightRounded<16>(du, bits));
}

// f16 bits in the low halves of the lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> F16Bits(D d, V value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  const V absolute = hn::BitCast(d, magnitude);

  const auto bias_change = hn::Set(du, (127 - 15) << 23);
  const auto normal =
      ShiftRightRounded<13>(du, hn::Sub(magnitude, bias_change));
  // 0.5 + x has a last place of 2^-24, the unit of subnormals.
  const V half = hn::Set(d, 0.5f);
  const auto subnormal =
      hn::Sub(hn::BitCast(du, hn::Add(absolute, half)), hn::BitCast(du, half));
  const auto infinity = hn::Set(du, 0x7C00);
  const auto nan =
      hn::Or(hn::Set(du, 0x7E00),
             hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FF)));

  const auto is_subnormal = hn::Lt(absolute, hn::Set(d, 0x1p-14f));
  const auto is_huge = hn::Ge(absolute, hn::Set(d, 65536.0f));
  const auto is_nan = hn::IsNaN(value);
  auto result =
      hn::IfThenElse(hn::RebindMask(du, is_subnormal), subnormal, normal);
  result = hn::IfThenElse(hn::RebindMask(du, is_huge), infinity, result);
  result = hn::IfThenElse(hn::RebindMask(du, is_nan), nan, result);
  return hn::Or(result, sign);
}

HWY_INLINE void RoundToBf16(const float* HWY_RESTRICT from, size_t count,
                            uint16_t* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bits = Bf16Bits(d, hn::LoadU(d, from + i));
    hn::StoreU(hn::TruncateTo(d16, bits), d16, to + i);
  }
  for (; i < count; ++i) to[i] = F32ToBf16(from[i]);
}

HWY_INLINE void RoundToF16(const float* HWY_RESTRICT from, size_t count,
                           uint16_t* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bits = F16Bits(d, hn::LoadU(d, from + i));
    hn::StoreU(hn::TruncateTo(d16, bits), d16, to + i);
  }
  for (; i < count; ++i) to[i] = F32ToF16(from[i]);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
