// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/tile_rows.h"

#include <algorithm>

#include "attention/isa.h"
#include "docs/examples/llm/engine/few_rows.h"
#include "paged_kv/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paged_kv::llm {

bool CanMultiplyTileRows() {
  // It also asks the system for the tiles.
  static const bool can = attention::ResolveIsa(attention::Isa::kAmxBf16).ok();
  return can;
}

#if defined(__x86_64__)

namespace {

#define PAGED_KV_TILES __attribute__((target("amx-tile,amx-bf16")))

constexpr size_t kTileRows = TileLayout::kRows;
constexpr size_t kTileRowBytes = TileLayout::kValues * sizeof(uint16_t);
constexpr size_t kTileValues = TileLayout::kRows * TileLayout::kValues;
// A step of the sum: 16 pairs of inputs for all outputs of a block.
constexpr size_t kPairBytes = size_t{4} * kOutputBlock;
constexpr size_t kStepBytes = kTileRows * kPairBytes;
// How far ahead of its use a weight is asked for.
constexpr size_t kPrefetchBytes = 2 * kStepBytes;
constexpr size_t kLineBytes = 64;

// What ldtilecfg reads (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapter 18).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// A quarter of a step's weights, unless they are no longer ours to read.
inline void PrefetchQuarter(const char* step, size_t quarter, const char* end) {
  const char* const first = step + kPrefetchBytes + quarter * (kStepBytes / 4);
  if (first + kStepBytes / 4 > end) return;
  for (size_t i = 0; i < kStepBytes / 4; i += kLineBytes) {
    __builtin_prefetch(first + i);
  }
}

// Up to 16 rows: sums of the block's four tiles of columns in tiles 0 to 3.
PAGED_KV_TILES void MultiplyOne(const uint16_t* x, size_t steps,
                                const char* weights, const char* end,
                                float* y) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t step = 0; step < steps; ++step) {
    _tile_loadd(4, x, kTileRowBytes);
    PrefetchQuarter(weights, 0, end);
    _tile_loadd(6, weights, kPairBytes);
    _tile_dpbf16ps(0, 4, 6);
    PrefetchQuarter(weights, 1, end);
    _tile_loadd(7, weights + kTileRowBytes, kPairBytes);
    _tile_dpbf16ps(1, 4, 7);
    PrefetchQuarter(weights, 2, end);
    _tile_loadd(6, weights + 2 * kTileRowBytes, kPairBytes);
    _tile_dpbf16ps(2, 4, 6);
    PrefetchQuarter(weights, 3, end);
    _tile_loadd(7, weights + 3 * kTileRowBytes, kPairBytes);
    _tile_dpbf16ps(3, 4, 7);
    x += kTileValues;
    weights += kStepBytes;
  }
  _tile_stored(0, y, kOutputBlock * sizeof(float));
  _tile_stored(1, y + kTileRows, kOutputBlock * sizeof(float));
  _tile_stored(2, y + 2 * kTileRows, kOutputBlock * sizeof(float));
  _tile_stored(3, y + 3 * kTileRows, kOutputBlock * sizeof(float));
}

// More than 16: two tiles of columns, each with both tiles of rows. The first
// half of a block asks for what the second one reads, too.
template <bool kFirstHalf>
PAGED_KV_TILES void MultiplyTwo(const uint16_t* x, size_t steps,
                                const char* weights, const char* end,
                                float* y) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t step = 0; step < steps; ++step) {
    _tile_loadd(4, x, kTileRowBytes);
    _tile_loadd(5, x + kTileValues, kTileRowBytes);
    if (kFirstHalf) {
      PrefetchQuarter(weights, 0, end);
      PrefetchQuarter(weights, 1, end);
    }
    _tile_loadd(6, weights, kPairBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if (kFirstHalf) {
      PrefetchQuarter(weights, 2, end);
      PrefetchQuarter(weights, 3, end);
    }
    _tile_loadd(7, weights + kTileRowBytes, kPairBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    x += 2 * kTileValues;
    weights += kStepBytes;
  }
  float* const below = y + kTileRows * kOutputBlock;
  _tile_stored(0, y, kOutputBlock * sizeof(float));
  _tile_stored(1, y + kTileRows, kOutputBlock * sizeof(float));
  _tile_stored(2, below, kOutputBlock * sizeof(float));
  _tile_stored(3, below + kTileRows, kOutputBlock * sizeof(float));
}

PAGED_KV_TILES void Multiply(const TileRows& product, const char* weights,
                             const char* end, float* y) {
  const size_t rows = product.layout.rows;
  const size_t first_rows = std::min(rows, kTileRows);
  const size_t other_rows = rows - first_rows;
  TileConfig config;
  for (size_t tile = 0; tile < 8; ++tile) {
    const bool is_other =
        other_rows > 0 && (tile == 2 || tile == 3 || tile == 5);
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = static_cast<uint8_t>(tile >= 6  ? kTileRows
                                             : is_other ? other_rows
                                                        : first_rows);
  }
  _tile_loadconfig(&config);
  const size_t steps =
      PaddedInputs(product.layout.inputs) / TileLayout::kValues;
  if (other_rows == 0) {
    MultiplyOne(product.x, steps, weights, end, y);
  } else {
    // The second half of the columns finds its weights in a cache.
    MultiplyTwo<true>(product.x, steps, weights, end, y);
    MultiplyTwo<false>(product.x, steps, weights + 2 * kTileRowBytes, end,
                       y + 2 * kTileRows);
  }
  _tile_release();
}

}  // namespace

void MultiplyTileRows(const TileRows& product, const void* weights,
                      const void* end, float* y) {
  PAGED_KV_CHECK(CanMultiplyTileRows());
  PAGED_KV_CHECK(product.layout.rows >= 1 &&
                 product.layout.rows <= kMaxTileRows);
  Multiply(product, static_cast<const char*>(weights),
           static_cast<const char*>(end), y);
}

#else

void MultiplyTileRows(const TileRows&, const void*, const void*, float*) {
  PAGED_KV_CHECK(CanMultiplyTileRows());
}

#endif  // defined(__x86_64__)

}  // namespace paged_kv::llm
