// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads stored K and V as f32 vectors.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_KV_READER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_KV_READER_INL_H_
#undef PAGED_KV_ATTENTION_KV_READER_INL_H_
#else
#define PAGED_KV_ATTENTION_KV_READER_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kTileRowBytes = 64;

// Lanes(du) 32-bit units from any address.
template <class DU, class V = hn::Vec<DU>>
HWY_INLINE V LoadUnits(DU du, const uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR
  uint32_t unit;
  std::memcpy(&unit, from, sizeof(unit));
  return hn::Set(du, unit);
#else
  const hn::Repartition<uint8_t, DU> d8;
  return hn::BitCast(du, hn::LoadU(d8, from));
#endif
}

// The f16 in the low half of each lane, whose high half is 0.
template <class D, class VU, class V = hn::Vec<D>>
HWY_INLINE V F16UnitsToF32(D d, VU units) {
#if HWY_TARGET < HWY_SSE4  // F16C
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> df16;
  return hn::PromoteTo(d, hn::BitCast(df16, hn::TruncateTo(d16, units)));
#else
  // Highway's own way without F16C takes infinity and NaN for numbers.
  const hn::RebindToUnsigned<D> du;
  const auto magnitude = hn::And(units, hn::Set(du, 0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(units, magnitude));
  // Exponent and mantissa in their f32 places; the product mends the bias, of
  // subnormals too.
  const V value = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)),
                          hn::Set(d, 0x1p112f));
  // Beyond the largest finite f16 the exponent field has to be all ones.
  const auto special = hn::Ge(value, hn::Set(d, 65536.0f));
  const auto bits = hn::Or(
      hn::BitCast(du, value),
      hn::IfThenElseZero(hn::RebindMask(du, special), hn::Set(du, 0x7F800000)));
  return hn::BitCast(d, hn::Or(bits, sign));
#endif
}

// A reader knows one dtype:
// - kElementBytes;
// - kTileRowsPerPair: rows of 64 bytes that hold two dims of 16 tokens;
// - KeyVector<kHalf>(d, pair, token): dim 2 * p + kHalf of Lanes(d) tokens from
//   `token` of a tile on, `pair` pointing at the rows of pair p;
// - ValueVector(d, from): Lanes(d) elements of a V row.

struct F32Reader {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kTileRowsPerPair = 2;

  template <size_t kHalf, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* pair,
                                         size_t token) {
    return ValueVector(d, pair + kHalf * kTileRowBytes + 4 * token);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from));
  }
};

struct Bf16Reader {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kTileRowsPerPair = 1;

  template <size_t kHalf, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* pair,
                                         size_t token) {
    // bf16 is the high half of an f32.
    const hn::RebindToUnsigned<D> du;
    const auto units = LoadUnits(du, pair + 4 * token);
    if constexpr (kHalf == 0) {
      return hn::BitCast(d, hn::ShiftLeft<16>(units));
    } else {
      return hn::BitCast(d, hn::And(units, hn::Set(du, 0xFFFF0000u)));
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::RebindToUnsigned<D> du;
    const auto halves = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, halves)));
  }
};

struct F16Reader {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kTileRowsPerPair = 1;

  template <size_t kHalf, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* pair,
                                         size_t token) {
    const hn::RebindToUnsigned<D> du;
    const auto units = LoadUnits(du, pair + 4 * token);
    if constexpr (kHalf == 0) {
      return F16UnitsToF32(d, hn::And(units, hn::Set(du, 0xFFFF)));
    } else {
      return F16UnitsToF32(d, hn::ShiftRight<16>(units));
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    const hn::Rebind<uint16_t, D> d16;
    const auto halves = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
#if HWY_TARGET < HWY_SSE4  // F16C
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::PromoteTo(d, hn::BitCast(df16, halves));
#else
    const hn::RebindToUnsigned<D> du;
    return F16UnitsToF32(d, hn::PromoteTo(du, halves));
#endif
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
