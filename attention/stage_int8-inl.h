// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of int8 as products of quads of bytes take them.

// Toggled, not guarded: included once per Highway target.
#if defined(PAGED_KV_ATTENTION_STAGE_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGED_KV_ATTENTION_STAGE_INT8_INL_H_
#undef PAGED_KV_ATTENTION_STAGE_INT8_INL_H_
#else
#define PAGED_KV_ATTENTION_STAGE_INT8_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/amx_rows-inl.h"
#include "attention/amx_tile_internal.h"
#include "attention/key_cursor_internal.h"
#include "attention/prefetch_list_internal.h"
#include "hwy/highway.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Columns of V that a row of four tiles has.
inline constexpr size_t kInt8UnitColumns = 4 * kAmxColumns;

// The V rows of a chunk as tiles [unit of 64 columns][4], with the values of
// tokens i, i + 16, i + 32 and i + 48, the quads of StoreWeightBytes(), side by
// side in row i. v_head_dim is a multiple of 64.
HWY_INLINE void StageInt8Values(const KeyChunk& chunk, size_t v_head_dim,
                                uint8_t* to, PrefetchCursor* cursor) {
  constexpr size_t kColumns = kInt8UnitColumns;
  const hn::FixedTag<uint8_t, kColumns> d;
  const hn::FixedTag<uint16_t, kColumns / 2> d16;
  const AmxValueRows values(chunk);
  PrefetchCursor prefetch = *cursor;
  for (size_t column = 0; column < v_head_dim; column += kColumns) {
    for (size_t i = 0; i < kAmxTileRows; ++i) {
      prefetch.Prefetch<2>();
      const auto load = [&](size_t token) HWY_ATTR {
        return hn::LoadU(d, values.rows[i + token] + column);
      };
      const auto v0 = load(0), v1 = load(16), v2 = load(32), v3 = load(48);
      const auto pairs = [&](auto a) HWY_ATTR { return hn::BitCast(d16, a); };
      const auto low01 = pairs(hn::InterleaveLower(d, v0, v1));
      const auto high01 = pairs(hn::InterleaveUpper(d, v0, v1));
      const auto low23 = pairs(hn::InterleaveLower(d, v2, v3));
      const auto high23 = pairs(hn::InterleaveUpper(d, v2, v3));
      auto* row = reinterpret_cast<uint16_t*>(to + i * kAmxTileRowBytes);
      constexpr size_t kNextTile = kAmxTileBytes / sizeof(uint16_t);
      hn::Store(hn::InterleaveLower(d16, low01, low23), d16, row);
      hn::Store(hn::InterleaveUpper(d16, low01, low23), d16, row + kNextTile);
      hn::Store(hn::InterleaveLower(d16, high01, high23), d16,
                row + 2 * kNextTile);
      hn::Store(hn::InterleaveUpper(d16, high01, high23), d16,
                row + 3 * kNextTile);
    }
    to += kColumns / kAmxColumns * kAmxTileBytes;
  }
  *cursor = prefetch;
}

// From the order of columns that this leaves, runs of four of each tile by
// turns, to that of dims.
HWY_INLINE void SortInt8Columns(size_t v_head_dim, float* output) {
  constexpr size_t kRun = 4;
  const hn::FixedTag<float, kRun> d;
  alignas(64) float sorted[kInt8UnitColumns];
  for (size_t unit = 0; unit < v_head_dim; unit += kInt8UnitColumns) {
    for (size_t c = 0; c < kInt8UnitColumns; c += kRun) {
      const size_t tile = c / kAmxColumns;
      const size_t run = c % kAmxColumns / kRun;
      hn::Store(hn::Load(d, output + unit + c), d,
                sorted + run * kAmxColumns + tile * kRun);
    }
    std::copy_n(sorted, kInt8UnitColumns, output + unit);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3
#endif  // toggle
