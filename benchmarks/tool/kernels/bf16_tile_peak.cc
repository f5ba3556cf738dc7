// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/roof_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paged_kv::tool {

#if defined(__x86_64__)

namespace {

// What LDTILECFG reads: rows and bytes per row of each tile register.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

constexpr uint16_t kHalf = 0x3F00;  // 0.5 in bf16

// Four chains of TDPBF16PS: two tiles times two tiles, as in a matrix product.
__attribute__((target("amx-tile,amx-bf16"))) float MultiplyTiles(
    size_t iterations) {
  const TileConfig config;
  alignas(64) uint16_t halves[512];
  for (uint16_t& half : halves) half = kHalf;
  alignas(64) float sums[256];
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, halves, 64);
  _tile_loadd(5, halves, 64);
  _tile_loadd(6, halves, 64);
  _tile_loadd(7, halves, 64);
  for (size_t i = 0; i < iterations; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

// Four products of 16 x 32 and 32 x 16 numbers.
constexpr size_t kFlops = 4 * 16 * 16 * 32 * 2;

}  // namespace

PeakKernel Bf16TilePeak() { return {"bf16_tile", MultiplyTiles, kFlops}; }

#else

PeakKernel Bf16TilePeak() { return {}; }

#endif  // x86

}  // namespace paged_kv::tool
