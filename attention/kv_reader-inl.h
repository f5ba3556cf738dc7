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
// - kElementBytes; kStoredBytes, those of an element in its page;
// - kHasScales: elements are to be multiplied by the scale of their token,
//   which is left to the caller;
// - kStepDims, kStepBytes: some dims of a tile's 16 tokens and the bytes of the
//   rows that hold them;
// - KeyVector<kDim>(d, step, token): dim kDim of a step, of Lanes(d) tokens
//   from `token` of the tile on;
// - ValueVector(d, from): Lanes(d) elements of a V row;
// - kPairsValues: two vectors of a V row are read as its even elements and its
//   odd ones, by KeyVector<0> and KeyVector<1>, which takes fewer instructions
//   and leaves outputs to SortColumns().

struct F32Reader {
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t kStoredBytes = 4;
  static constexpr bool kHasScales = false;
  static constexpr bool kPairsValues = false;
  static constexpr size_t kStepDims = 2;
  static constexpr size_t kStepBytes = 2 * kTileRowBytes;

  template <size_t kDim, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* step,
                                         size_t token) {
    return ValueVector(d, step + kDim * kTileRowBytes + 4 * token);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from));
  }
};

struct Bf16Reader {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kStoredBytes = 2;
  static constexpr bool kHasScales = false;
  static constexpr bool kPairsValues = HWY_TARGET <= HWY_AVX3;
  static constexpr size_t kStepDims = 2;
  static constexpr size_t kStepBytes = kTileRowBytes;

  template <size_t kDim, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* step,
                                         size_t token) {
    // bf16 is the high half of an f32.
    const hn::RebindToUnsigned<D> du;
    const auto units = LoadUnits(du, step + 4 * token);
    if constexpr (kDim == 0) {
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
  static constexpr size_t kStoredBytes = 2;
  static constexpr bool kHasScales = false;
  static constexpr bool kPairsValues = false;
  static constexpr size_t kStepDims = 2;
  static constexpr size_t kStepBytes = kTileRowBytes;

  template <size_t kDim, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* step,
                                         size_t token) {
    const hn::RebindToUnsigned<D> du;
    const auto units = LoadUnits(du, step + 4 * token);
    if constexpr (kDim == 0) {
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

// Both 8-bit types: Decoder::Decode(d, units) gives the values of the codes in
// the highest bytes of the lanes, whatever the other bytes hold.
template <class Decoder>
struct EightBitReader {
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kStoredBytes = 1;
  static constexpr bool kHasScales = true;
  static constexpr bool kPairsValues = false;
  static constexpr size_t kStepDims = 4;
  static constexpr size_t kStepBytes = kTileRowBytes;

  template <size_t kDim, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* step,
                                         size_t token) {
    const hn::RebindToUnsigned<D> du;
    const auto units = LoadUnits(du, step + 4 * token);
    return Decoder::Decode(d, hn::ShiftLeft<24 - 8 * kDim>(units));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    const hn::Rebind<uint8_t, D> d8;
    const hn::RebindToUnsigned<D> du;
    const auto units = hn::PromoteTo(du, hn::LoadU(d8, from));
    return Decoder::Decode(d, hn::ShiftLeft<24>(units));
  }
};

struct E4m3Decoder {
  template <class D, class VU, class V = hn::Vec<D>>
  static HWY_INLINE V Decode(D d, VU units) {
    const hn::RebindToUnsigned<D> du;
    const auto sign = hn::And(units, hn::Set(du, 0x80000000));
    // Exponent and mantissa in their f32 places, and the difference of biases.
    const auto field =
        hn::And(hn::ShiftRight<4>(units), hn::Set(du, 0x07F00000));
    const V normal = hn::BitCast(d, hn::Add(field, hn::Set(du, 120u << 23)));
    // Exponent field 0 means 2^-6 m / 8, and has become 2^-7 (1 + m / 8), the
    // half of it plus 2^-7. From 2^-6 on the line is above what it mends. No
    // step works on subnormal f32 numbers, which many processors are slow at.
    const V magnitude = hn::Min(
        normal, hn::MulAdd(normal, hn::Set(d, 2.0f), hn::Set(d, -0x1p-6f)));
    // The code above 448 is NaN.
    const auto is_nan = hn::Gt(magnitude, hn::Set(d, 448.0f));
    const V value = hn::IfThenElse(is_nan, hn::NaN(d), magnitude);
    return hn::BitCast(d, hn::Or(hn::BitCast(du, value), sign));
  }
};

struct Int8Decoder {
  template <class D, class VU>
  static HWY_INLINE hn::Vec<D> Decode(D d, VU units) {
    const hn::RebindToSigned<D> di;
    return hn::ConvertTo(d, hn::ShiftRight<24>(hn::BitCast(di, units)));
  }
};

using E4m3Reader = EightBitReader<E4m3Decoder>;
using Int8Reader = EightBitReader<Int8Decoder>;

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
