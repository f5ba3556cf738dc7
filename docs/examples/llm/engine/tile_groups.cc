// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/tile_groups.h"

#include "docs/examples/llm/engine/split_bf16.h"

namespace paged_kv::llm {
namespace {

// Starting a task costs about as much as splitting so many values.
constexpr size_t kTaskValues = 8192;

void SplitRow(const TileGroups& groups, size_t row,
              absl::Span<const float> values, uint16_t* out) {
  const size_t group = row / groups.RowsPerGroup();
  const TileLayout layout = groups.Layout(group);
  const size_t in_group = row - groups.First(group);
  uint16_t* parts[kMaxParts] = {};
  for (size_t part = 0; part < groups.parts; ++part) {
    parts[part] = out + groups.Offset(group) +
                  layout.RowOffset(part * groups.Rows(group) + in_group);
  }
  SplitIntoTiles(values, absl::MakeConstSpan(parts, groups.parts),
                 layout.stride());
}

}  // namespace

void SplitIntoGroups(const TileGroups& groups, absl::Span<const float> x,
                     uint16_t* out, attention::ParallelFor& parallel) {
  const size_t inputs = groups.inputs;
  const size_t rows_per_task = std::max<size_t>(1, kTaskValues / inputs);
  const size_t tasks = (groups.rows + rows_per_task - 1) / rows_per_task;
  parallel.Run(tasks, [&](size_t task, size_t) {
    const size_t end = std::min(groups.rows, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) {
      SplitRow(groups, row, x.subspan(row * inputs, inputs), out);
    }
  });
}

}  // namespace paged_kv::llm
