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

struct TileRows {
  uint32_t inputs = 0;
  uint32_t rows = 0;            // 1 to kMaxTileRows
  const uint16_t* x = nullptr;  // [rows, PaddedInputs(inputs)] bf16. Borrowed.
};

// Whether this processor and this system have tiles of bf16.
bool CanMultiplyTileRows();

// y [rows, kOutputBlock] for one block of weights,
// [PaddedInputs(inputs) / 2, kOutputBlock, 2], as MultiplyFewRows() takes it
// and with the bits of its chains of 32. Behind `weights`, up to `end`, lies
// what is going to be read next. REQUIRES: CanMultiplyTileRows().
//
// Thread safety: may run concurrently, each with its own y.
void MultiplyTileRows(const TileRows& product, const void* weights,
                      const void* end, float* y);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_ROWS_H_
