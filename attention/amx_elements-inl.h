// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From stored K and V to the tiles of bf16 that AMX multiplies: 16 pairs of
// terms of a sum times 16 columns. Which dims and tokens make up a pair is free
// as long as both factors agree, and so is the order of columns of V; each is
// what takes the fewest instructions.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_AMX_ELEMENTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_AMX_ELEMENTS_INL_H_
#undef PAGED_KV_ATTENTION_AMX_ELEMENTS_INL_H_
#else
#define PAGED_KV_ATTENTION_AMX_ELEMENTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/amx_tile_internal.h"
#include "attention/float_formats.h"
#include "attention/prefetch_list_internal.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Dims of keys, and tokens of values, that one tile sums over.
inline constexpr size_t kAmxTerms = 2 * kAmxTileRows;
// Tokens of keys, and dims of values, that are the columns of one tile.
inline constexpr size_t kAmxColumns = 16;

// A class of elements says, for one dtype:
// - kElementBytes, kHasScales as the readers of kv_reader-inl.h;
// - kDecodesKeys: whether stored K tiles have to be decoded, and if so
//   DecodeKeys(tile, step, to, prefetch): 16 tokens times the 32 dims of a step
//   as a tile at `to`; takes half as many lines from `prefetch` as it reads;
// - KeyTerm(i): which dim of a step is its i-th term;
// - kUnitColumns, ValuePair(a, b, to): as many columns of two rows of V become
//   one row each of kUnitColumns / 16 tiles that follow each other;
// - UnitColumn(tile, n): which column of a unit is column n of its tile.

struct AmxBf16Elements {
  static constexpr size_t kElementBytes = 2;
  static constexpr bool kHasScales = false;
  static constexpr bool kDecodesKeys = false;
  static constexpr size_t kUnitColumns = 32;

  // Pages hold K as AMX takes it.
  static constexpr size_t KeyTerm(size_t i) { return i; }

  HWY_INLINE void ValuePair(const uint8_t* a, const uint8_t* b,
                            uint8_t* to) const {
    const hn::FixedTag<uint16_t, 32> d16;
    const auto va = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(a));
    const auto vb = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(b));
    hn::Store(hn::InterleaveLower(d16, va, vb), d16,
              reinterpret_cast<uint16_t*>(to));
    hn::Store(hn::InterleaveUpper(d16, va, vb), d16,
              reinterpret_cast<uint16_t*>(to + kAmxTileBytes));
  }
  static constexpr size_t UnitColumn(size_t tile, size_t n) {
    return n / 4 * 8 + tile * 4 + n % 4;
  }
};

// The bf16 values of the 128 codes of an 8-bit type that are not negative, as
// tables of their low and high bytes.
struct ByteTables {
  template <class ToFloat>
  explicit ByteTables(ToFloat to_float) {
    for (size_t code = 0; code < 128; ++code) {
      const uint16_t bits = F32ToBf16(to_float(static_cast<uint8_t>(code)));
      low[code] = static_cast<uint8_t>(bits & 0xFF);
      high[code] = static_cast<uint8_t>(bits >> 8);
    }
  }

  alignas(64) uint8_t low[128];
  alignas(64) uint8_t high[128];
};

// A class of codes says: ToFloat(code); Magnitude(codes), which code of those
// 128 has each one's magnitude, in bits 0 .. 6; AddMissing(high, codes), to the
// high bytes of their values what these bits cannot say.
struct E4m3Codes {
  using Tag = hn::FixedTag<uint8_t, 64>;
  using V = hn::Vec<Tag>;

  static float ToFloat(uint8_t code) { return E4m3ToF32(code); }
  static HWY_INLINE V Magnitude(V codes) { return codes; }
  static HWY_INLINE V AddMissing(V high, V /*codes*/) { return high; }
};
struct Int8Codes {
  using Tag = hn::FixedTag<uint8_t, 64>;
  using V = hn::Vec<Tag>;

  static float ToFloat(uint8_t code) { return Int8ToF32(code); }
  static HWY_INLINE V Magnitude(V codes) {
    const hn::RebindToSigned<Tag> di;
    return hn::BitCast(Tag(), hn::Abs(hn::BitCast(di, codes)));
  }
  // -128 has a magnitude of 8 bits; seven of them are 0.
  static HWY_INLINE V AddMissing(V high, V codes) {
    const Tag d;
    const auto is_lowest = hn::Eq(codes, hn::Set(d, uint8_t{0x80}));
    constexpr uint8_t kHighByteOf128 = 0x43;  // of bf16
    return hn::Or(high,
                  hn::IfThenElseZero(is_lowest, hn::Set(d, kHighByteOf128)));
  }
};

// Both 8-bit types: codes become bf16, exactly, by looking up both of its bytes
// (AVX-512 VBMI, which every processor with AMX has); bit 7 is the sign.
template <class Codes>
class AmxEightBitElements {
 public:
  static constexpr size_t kElementBytes = 1;
  static constexpr bool kHasScales = true;
  static constexpr bool kDecodesKeys = true;
  static constexpr size_t kUnitColumns = 64;

  AmxEightBitElements() : AmxEightBitElements(Tables()) {}

  // A row of the stored tile has four dims of each token.
  HWY_INLINE void DecodeKeys(const uint8_t* tile, size_t step, uint8_t* to,
                             PrefetchCursor* prefetch) const {
    constexpr size_t kRows = kAmxTileRows / 2;
    const uint8_t* from = tile + step * kRows * kAmxTileRowBytes;
    HWY_UNROLL(8)
    for (size_t row = 0; row < kRows; ++row) {
      if (row % 4 == 0) prefetch->Prefetch<2>();
      DecodeEvenAndOdd(hn::LoadU(Tag(), from + row * kAmxTileRowBytes),
                       to + 2 * row * kAmxTileRowBytes,
                       to + (2 * row + 1) * kAmxTileRowBytes);
    }
  }
  static constexpr size_t KeyTerm(size_t i) {
    return i / 4 * 4 + i % 2 * 2 + i % 4 / 2;
  }

  HWY_INLINE void ValuePair(const uint8_t* a, const uint8_t* b,
                            uint8_t* to) const {
    // Two columns of a beside the same two of b.
    const auto va = hn::BitCast(Tag16(), hn::LoadU(Tag(), a));
    const auto vb = hn::BitCast(Tag16(), hn::LoadU(Tag(), b));
    StorePairs(hn::InterleaveLower(Tag16(), va, vb), to);
    StorePairs(hn::InterleaveUpper(Tag16(), va, vb), to + 2 * kAmxTileBytes);
  }
  // The first or the last two of its four tiles.
  template <int kHalf>
  HWY_INLINE void HalfValuePair(const uint8_t* a, const uint8_t* b,
                                uint8_t* to) const {
    const auto va = hn::BitCast(Tag16(), hn::LoadU(Tag(), a));
    const auto vb = hn::BitCast(Tag16(), hn::LoadU(Tag(), b));
    StorePairs(kHalf == 0 ? hn::InterleaveLower(Tag16(), va, vb)
                          : hn::InterleaveUpper(Tag16(), va, vb),
               to);
  }
  static constexpr size_t UnitColumn(size_t tile, size_t n) {
    return n / 4 * 16 + tile / 2 * 8 + n % 4 * 2 + tile % 2;
  }

 private:
  using Tag = hn::FixedTag<uint8_t, 64>;
  using Tag16 = hn::FixedTag<uint16_t, 32>;
  using V = hn::Vec<Tag>;

  explicit AmxEightBitElements(const ByteTables& tables)
      : low0_(hn::Load(Tag(), tables.low)),
        low1_(hn::Load(Tag(), tables.low + 64)),
        high0_(hn::Load(Tag(), tables.high)),
        high1_(hn::Load(Tag(), tables.high + 64)) {}

  static const ByteTables& Tables() {
    static const ByteTables tables(&Codes::ToFloat);
    return tables;
  }

  // Looks bits 0 .. 6 of each byte up in a table of 128. As assembly, because
  // VBMI is not part of this target of Highway.
  static HWY_INLINE V LookUp(V codes, V table0, V table1) {
    asm("vpermi2b %2, %1, %0"
        : "+v"(codes.raw)
        : "v"(table0.raw), "v"(table1.raw));
    return codes;
  }

  // Stores the values of the even bytes at `even`, those of the odd ones at
  // `odd`, 64 bytes each.
  HWY_INLINE void DecodeEvenAndOdd(V codes, uint8_t* even, uint8_t* odd) const {
    const Tag16 d16;
    const V magnitude = Codes::Magnitude(codes);
    const auto low = hn::BitCast(d16, LookUp(magnitude, low0_, low1_));
    const V signed_high = hn::OrAnd(LookUp(magnitude, high0_, high1_), codes,
                                    hn::Set(Tag(), uint8_t{0x80}));
    const auto high = hn::BitCast(d16, Codes::AddMissing(signed_high, codes));
    hn::Store(
        hn::OrAnd(hn::ShiftLeft<8>(high), low, hn::Set(d16, uint16_t{0x00FF})),
        d16, reinterpret_cast<uint16_t*>(even));
    hn::Store(
        hn::OrAnd(hn::ShiftRight<8>(low), high, hn::Set(d16, uint16_t{0xFF00})),
        d16, reinterpret_cast<uint16_t*>(odd));
  }

  HWY_INLINE void StorePairs(hn::Vec<Tag16> pairs, uint8_t* to) const {
    DecodeEvenAndOdd(hn::BitCast(Tag(), pairs), to, to + kAmxTileBytes);
  }

  const V low0_;
  const V low1_;
  const V high0_;
  const V high1_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
