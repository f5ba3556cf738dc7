// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From [token][dim] rows to a K tile, whatever the dtype: a tile's units of
// 4 bytes are those of the rows, transposed.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_TILE_TRANSPOSE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_TILE_TRANSPOSE_INL_H_
#undef PAGED_KV_ATTENTION_TILE_TRANSPOSE_INL_H_
#else
#define PAGED_KV_ATTENTION_TILE_TRANSPOSE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/kv_reader-inl.h"
#include "attention/prefetch_list_internal.h"
#include "hwy/highway.h"
#include "paged_kv/block_shape.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kUnitBytes = 4;

// Moves units [first_unit, num_units) one at a time.
HWY_INLINE void TransposeUnits(const uint8_t* const* rows, size_t first_unit,
                               size_t num_units, uint8_t* tile) {
  for (size_t u = first_unit; u < num_units; ++u) {
    for (size_t t = 0; t < kTileTokens; ++t) {
      std::memcpy(tile + u * kTileRowBytes + t * kUnitBytes,
                  rows[t] + u * kUnitBytes, kUnitBytes);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// A vector whose 128-bit block b holds the four units at `offset` of row 4 * b.
template <class DU, class V = hn::Vec<DU>>
HWY_INLINE V LoadBlocks(DU du, const uint8_t* const* rows, size_t offset) {
  if constexpr (hn::MaxLanes(DU()) == 4) {
    return LoadUnits(du, rows[0] + offset);
  } else {
    const hn::Half<DU> dh;
    return hn::Combine(du, LoadBlocks(dh, rows + hn::MaxLanes(dh), offset),
                       LoadBlocks(dh, rows, offset));
  }
}

// Four units of Lanes(du) tokens, transposed in 4 x 4 blocks: afterwards the
// block of tokens 4 * b .. 4 * b + 3 is block b, and so each vector is a run of
// a tile row.
template <class DU>
HWY_INLINE void TransposeFour(DU du, const uint8_t* const* rows, size_t offset,
                              uint8_t* to) {
  using V = hn::Vec<DU>;
  const hn::Repartition<uint64_t, DU> d64;
  const hn::Repartition<uint8_t, DU> d8;
  const V r0 = LoadBlocks(du, rows + 0, offset);
  const V r1 = LoadBlocks(du, rows + 1, offset);
  const V r2 = LoadBlocks(du, rows + 2, offset);
  const V r3 = LoadBlocks(du, rows + 3, offset);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(du, r0, r1));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(du, r0, r1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(du, r2, r3));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(du, r2, r3));
  const auto u0 = hn::InterleaveLower(d64, low01, low23);
  const auto u1 = hn::InterleaveUpper(d64, low01, low23);
  const auto u2 = hn::InterleaveLower(d64, high01, high23);
  const auto u3 = hn::InterleaveUpper(d64, high01, high23);
  hn::StoreU(hn::BitCast(d8, u0), d8, to + 0 * kTileRowBytes);
  hn::StoreU(hn::BitCast(d8, u1), d8, to + 1 * kTileRowBytes);
  hn::StoreU(hn::BitCast(d8, u2), d8, to + 2 * kTileRowBytes);
  hn::StoreU(hn::BitCast(d8, u3), d8, to + 3 * kTileRowBytes);
}

#endif  // HWY_TARGET != HWY_SCALAR

// Writes a tile of `num_units` rows from 16 token rows of as many units. Reads
// nothing beyond the rows. Takes a line from `prefetch`, unless null, for every
// four units: faster than memory brings them, they would hold up the rows.
HWY_INLINE void TransposeToTile(const uint8_t* const* rows, size_t num_units,
                                uint8_t* tile, PrefetchCursor* prefetch) {
  size_t u = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<uint32_t, kTileTokens> du;
  constexpr size_t kLanes = hn::MaxLanes(du);
  for (; u + 4 <= num_units; u += 4) {
    if (prefetch != nullptr) prefetch->Prefetch<1>();
    HWY_UNROLL(4)
    for (size_t t = 0; t < kTileTokens; t += kLanes) {
      TransposeFour(du, rows + t, u * kUnitBytes,
                    tile + u * kTileRowBytes + t * kUnitBytes);
    }
  }
#else
  (void)prefetch;
#endif
  TransposeUnits(rows, u, num_units, tile);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // toggle
