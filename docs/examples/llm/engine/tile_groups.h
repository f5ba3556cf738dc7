// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_GROUPS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_GROUPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/tile_rows.h"

namespace paged_kv::llm {

// How the rows of a layer's input become products of tiles: each row is `parts`
// rows of a product (split_bf16.h), and as many rows as fit are a group, its
// first parts first.
struct TileGroups {
  size_t rows = 0;
  uint32_t inputs = 0;
  uint32_t parts = 1;

  size_t RowsPerGroup() const { return kMaxTileRows / parts; }
  size_t groups() const { return (rows + RowsPerGroup() - 1) / RowsPerGroup(); }
  // Rows before the group, and in it.
  size_t First(size_t group) const { return group * RowsPerGroup(); }
  size_t Rows(size_t group) const {
    return std::min(RowsPerGroup(), rows - First(group));
  }
  TileLayout Layout(size_t group) const {
    return {inputs, static_cast<uint32_t>(Rows(group) * parts)};
  }
  // Where the group begins, in values; all but the last are equally large.
  size_t Offset(size_t group) const {
    return group == 0 ? 0 : group * Layout(0).size();
  }
  size_t size() const {
    return rows == 0 ? 0 : Offset(groups() - 1) + Layout(groups() - 1).size();
  }
};

void SplitIntoGroups(const TileGroups& groups,
                     absl::Span<const float> x,  // [rows, inputs]
                     uint16_t* out,              // [groups.size()]
                     attention::ParallelFor& parallel);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_TILE_GROUPS_H_
