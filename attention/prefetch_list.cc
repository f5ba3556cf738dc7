// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/prefetch_list_internal.h"

#include "paged_kv/block_shape.h"

namespace paged_kv::attention::internal {
namespace {

constexpr size_t kTiles = kChunkTokens / kTileTokens;

// True if the rows of each tile's tokens follow each other without a gap.
bool AreDense(const uint8_t* const* rows, size_t row_bytes) {
  constexpr size_t kLast = kTileTokens - 1;
  for (size_t t = 0; t < kChunkTokens; t += kTileTokens) {
    if (rows[t + kLast] != rows[t] + kLast * row_bytes) return false;
  }
  return true;
}

}  // namespace

PrefetchCursor PrefetchList::Reset(const AttendCall& call,
                                   const KeyChunk& chunk) {
  num_groups_ = 0;
  const BlockShape& shape = call.pages.shape;
  const size_t element = ElementBytes(shape.dtype);
  const size_t k_row = shape.head_dim * element;
  const size_t v_row = shape.VHeadDim() * element;
  const bool tiled = call.pages.layout.k_order == KOrder::kTiled16;
  const bool v_dense = AreDense(chunk.v, v_row);
  if (tiled && v_dense && k_row == v_row) {
    PrefetchGroup* group = NewGroup(kTileTokens * k_row);
    for (size_t t = 0; t < kTiles; ++t) {
      group->runs[t] = chunk.k[t];
      group->runs[kTiles + t] = chunk.v[t * kTileTokens];
    }
    return PrefetchCursor(groups_, groups_ + num_groups_);
  }
  if (tiled) {
    AddTiles(chunk.k, kTileTokens * k_row);
  } else {
    AddRows(chunk.k, k_row);
  }
  AddRows(chunk.v, v_row);
  return PrefetchCursor(groups_, groups_ + num_groups_);
}

PrefetchGroup* PrefetchList::NewGroup(size_t bytes) {
  groups_[num_groups_].bytes = bytes;
  return &groups_[num_groups_++];
}

// Two runs per tile, its halves.
void PrefetchList::AddTiles(const uint8_t* const* tiles, size_t tile_bytes) {
  static_assert(2 * kTiles == PrefetchGroup::kRuns);
  PrefetchGroup* group = NewGroup(tile_bytes / 2);
  for (size_t t = 0; t < kTiles; ++t) {
    group->runs[t] = tiles[t];
    group->runs[kTiles + t] = tiles[t] + tile_bytes / 2;
  }
}

void PrefetchList::AddRows(const uint8_t* const* rows, size_t row_bytes) {
  constexpr size_t kRunTokens = kChunkTokens / PrefetchGroup::kRuns;
  const bool dense = AreDense(rows, row_bytes);
  const size_t steps = dense ? 1 : kRunTokens;
  for (size_t i = 0; i < steps; ++i) {
    PrefetchGroup* group = NewGroup(dense ? kRunTokens * row_bytes : row_bytes);
    for (size_t r = 0; r < PrefetchGroup::kRuns; ++r) {
      group->runs[r] = rows[r * kRunTokens + i];
    }
  }
}

}  // namespace paged_kv::attention::internal
