// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of some rows with packed weights of bf16 by AMX tiles: decode steps
// of a batch. As with few rows (few_rows.h), what counts is that the weights
// are always on their way while the tiles work on those that are there.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_ROWS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace paged_kv::llm {

// Rows of one product at most: two tiles.
inline constexpr uint32_t kMaxTileRows = 32;

// How the rows of a product lie: as tiles of 16 rows and 32 values, those of
// the same values side by side, [PaddedInputs(inputs) / 32, tiles, 16, 32], so
// that a tile is one piece of memory that shares its cache sets with no other.
struct TileLayout {
  uint32_t inputs = 0;
  uint32_t rows = 0;  // 1 to kMaxTileRows

  static constexpr size_t kRows = 16, kValues = 32;

  constexpr size_t tiles() const { return (rows + kRows - 1) / kRows; }
  // From 32 values of a row to its next.
  constexpr size_t stride() const { return tiles() * kRows * kValues; }
  constexpr size_t size() const {
    return (inputs + kValues - 1) / kValues * stride();
  }
  constexpr size_t RowOffset(size_t row) const { return row * kValues; }
};

struct TileRows {
  TileLayout layout;
  // [layout.size()] bf16, zeros behind a row's last input. Borrowed.
  const uint16_t* x = nullptr;
};

// Whether this processor and this system have tiles of bf16.
bool CanMultiplyTileRows();

// y [rows, kOutputBlock] for one block of weights,
// [PaddedInputs(inputs) / 2, kOutputBlock, 2], as MultiplyFewRows() takes it.
// Inputs are added up in chains of 32, each the sums of its even and of its odd
// ones (TDPBF16PS of Intel's instruction set reference). Behind `weights`, up
// to `end`, lies what is going to be read next.
// REQUIRES: CanMultiplyTileRows().
//
// Thread safety: may run concurrently, each with its own y.
void MultiplyTileRows(const TileRows& product, const void* weights,
                      const void* end, float* y);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_ROWS_H_
