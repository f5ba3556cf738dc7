// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes of fp8 e4m3 as f16, from which AVX-512 loads f32 vectors with one
// conversion each: a third of the instructions of decoding codes in registers.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_STAGE_E4M3_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_STAGE_E4M3_INL_H_
#undef PAGED_KV_ATTENTION_STAGE_E4M3_INL_H_
#else
#define PAGED_KV_ATTENTION_STAGE_E4M3_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/kv_reader-inl.h"
#include "hwy/highway.h"

#if HWY_TARGET <= HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Reads what E4m3Stage leaves: f16 numbers that are 2^-8 of the elements.
struct StagedE4m3Reader {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kStoredBytes = 1;
  static constexpr bool kHasScales = true;
  static constexpr bool kPairsValues = false;
  static constexpr size_t kStepDims = 4;
  static constexpr size_t kStepBytes = 2 * kTileRowBytes;
  static constexpr float kFactor = 256.0f;

  // Dims 0, 2, 1, 3, each of 16 tokens.
  template <size_t kDim, class D>
  static HWY_INLINE hn::Vec<D> KeyVector(D d, const uint8_t* step,
                                         size_t token) {
    constexpr size_t kOffset = kDim % 2 * kTileRowBytes + kDim / 2 * 32;
    return ValueVector(d, step + kOffset + 2 * token);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> ValueVector(D d, const uint8_t* from) {
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::PromoteTo(
        d, hn::LoadU(df16, reinterpret_cast<const hwy::float16_t*>(from)));
  }
};

// A code in the lower seven bits of the upper byte and its sign above them is,
// shifted by one, an f16 whose exponent has 7 for its bias in place of 15:
// subnormal numbers are exact, too. The codes of NaN become numbers, which are
// looked for on the side and mended in a second run, being rare.
class E4m3Stage {
 public:
  // `count` tiles of 16 tokens, [count, head_dim, 16] f16 at `to`; `tiles`
  // become those.
  static HWY_INLINE void Keys(const uint8_t** tiles, size_t count,
                              size_t head_dim, uint8_t* to) {
    if (HWY_UNLIKELY(StageKeys<false>(tiles, count, head_dim, to))) {
      StageKeys<true>(tiles, count, head_dim, to);
    }
    const size_t tile_bytes = 2 * kTileTokens * head_dim;
    for (size_t t = 0; t < count; ++t) tiles[t] = to + t * tile_bytes;
  }

  // Rows of V, of which `to` [count, v_head_dim] has the f16; v_head_dim is a
  // multiple of 64.
  static HWY_INLINE void Values(const uint8_t* const* rows, size_t count,
                                size_t v_head_dim, uint8_t* to) {
    if (HWY_UNLIKELY(StageValues<false>(rows, count, v_head_dim, to))) {
      StageValues<true>(rows, count, v_head_dim, to);
    }
  }

 private:
  using Tag = hn::FixedTag<int16_t, 32>;
  using ByteTag = hn::FixedTag<uint8_t, 64>;

  static HWY_INLINE hn::Vec<Tag> Mend(hn::Vec<Tag> f16) {
    const Tag d;
    const auto magnitude = hn::And(f16, hn::Set(d, 0x7FFF));
    return hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, 0x3F80)),
                          hn::Or(f16, hn::Set(d, 0x7E00)), f16);
  }

  // Stages codes in the upper bytes, whatever the lower ones hold, with even
  // lanes before odd ones.
  template <bool kMend>
  static HWY_INLINE void StageUpper(hn::Vec<Tag> codes, uint8_t* to) {
    const Tag d;
    auto f16 = hn::And(hn::ShiftRight<1>(codes),
                       hn::Set(d, static_cast<int16_t>(0xBF80)));
    if constexpr (kMend) f16 = Mend(f16);
    alignas(64) static constexpr int16_t kEvenThenOdd[32] = {
        0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
        1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    const auto order = hn::Load(d, kEvenThenOdd);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(order.raw, f16.raw));
  }

  // Both return whether there was a NaN that they did not mend.
  template <bool kMend>
  static HWY_NOINLINE bool StageKeys(const uint8_t* const* tiles, size_t count,
                                     size_t head_dim, uint8_t* to) {
    const Tag d;
    const ByteTag d8;
    const auto magnitude = hn::Set(d8, 0x7F);
    auto largest = hn::Zero(d8);
    for (size_t t = 0; t < count; ++t) {
      const uint8_t* from = tiles[t];
      for (size_t dim = 0; dim < head_dim; dim += StagedE4m3Reader::kStepDims) {
        const auto codes = hn::LoadU(d, reinterpret_cast<const int16_t*>(from));
        StageUpper<kMend>(hn::ShiftLeft<8>(codes), to);
        StageUpper<kMend>(codes, to + kTileRowBytes);
        largest = hn::Max(largest, hn::And(hn::BitCast(d8, codes), magnitude));
        from += kTileRowBytes;
        to += StagedE4m3Reader::kStepBytes;
      }
    }
    return !kMend && !hn::AllFalse(d8, hn::Eq(largest, magnitude));
  }

  template <bool kMend>
  static HWY_NOINLINE bool StageValues(const uint8_t* const* rows, size_t count,
                                       size_t v_head_dim, uint8_t* to) {
    const Tag d;
    const ByteTag d8;
    const auto magnitude = hn::Set(d8, 0x7F);
    auto largest = hn::Zero(d8);
    for (size_t j = 0; j < count; ++j) {
      for (size_t c = 0; c < v_head_dim; c += 64) {
        const uint8_t* from = rows[j] + c;
        StageNatural<kMend>(from, to);
        StageNatural<kMend>(from + 32, to + 64);
        largest = hn::Max(largest, hn::And(hn::LoadU(d8, from), magnitude));
        to += 128;
      }
    }
    return !kMend && !hn::AllFalse(d8, hn::Eq(largest, magnitude));
  }

  // Stages 32 codes in their order.
  template <bool kMend>
  static HWY_INLINE void StageNatural(const uint8_t* from, uint8_t* to) {
    const Tag d;
    const hn::Rebind<int8_t, Tag> d8;
    const auto codes =
        hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const int8_t*>(from)));
    // The sign lies in bits 14 and 15.
    auto f16 = hn::And(hn::ShiftLeft<7>(codes),
                       hn::Set(d, static_cast<int16_t>(0xBFFF)));
    if constexpr (kMend) f16 = Mend(f16);
    hn::Store(f16, d, reinterpret_cast<int16_t*>(to));
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET <= HWY_AVX3
#endif  // toggle
