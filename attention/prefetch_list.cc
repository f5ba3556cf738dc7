// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/prefetch_list_internal.h"

#include <algorithm>

#include "paged_kv/block_shape.h"

namespace paged_kv::attention::internal {
namespace {

constexpr size_t kLineBytes = 64;
// Where the processor's own prefetcher stops following a run.
constexpr size_t kFollowedBytes = 4096;
constexpr size_t kMaxPieces = 2 * kChunkTiles;

// True if the rows of each tile's tokens follow each other without a gap.
bool AreDense(const uint8_t* const* rows, size_t row_bytes) {
  constexpr size_t kLast = kTileTokens - 1;
  for (size_t t = 0; t < kChunkTokens; t += kTileTokens) {
    if (rows[t + kLast] != rows[t] + kLast * row_bytes) return false;
  }
  return true;
}

// Bytes from each piece in `first` to the one in `second` that are the same for
// all `count` of them, and not much more than a piece; 0: there are none.
size_t Distance(const uint8_t* const* first, const uint8_t* const* second,
                size_t stride, size_t count, size_t bytes) {
  const auto distance = reinterpret_cast<uintptr_t>(*second) -
                        reinterpret_cast<uintptr_t>(*first);
  // A line of scales may lie between them.
  if (distance < bytes || distance > bytes + kLineBytes) return 0;
  for (size_t i = 0; i < count; ++i) {
    if (second[i * stride] != first[i * stride] + distance) return 0;
  }
  return distance;
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
  const bool k_dense = tiled || AreDense(chunk.k, k_row);
  const bool v_dense = AreDense(chunk.v, v_row);
  // Keys, then values.
  const uint8_t* pieces[kMaxPieces];
  for (size_t t = 0; t < kChunkTiles; ++t) {
    pieces[t] = chunk.k[tiled ? t : t * kTileTokens];
    pieces[kChunkTiles + t] = chunk.v[t * kTileTokens];
  }
  if (k_dense && v_dense && k_row == v_row) {
    AddPieces(pieces, kMaxPieces, kTileTokens * k_row);
  } else {
    if (k_dense) {
      AddPieces(pieces, kChunkTiles, kTileTokens * k_row);
    } else {
      AddRows(chunk.k, k_row);
    }
    if (v_dense) {
      AddPieces(pieces + kChunkTiles, kChunkTiles, kTileTokens * v_row);
    } else {
      AddRows(chunk.v, v_row);
    }
  }
  return PrefetchCursor(groups_, groups_ + num_groups_);
}

// Joins pieces until runs are long or nothing follows anything: neighbours, or
// each piece of the first half with its like of the second one.
void PrefetchList::AddPieces(const uint8_t* const* starts, size_t count,
                             size_t bytes) {
  const uint8_t* runs[kMaxPieces];
  std::copy_n(starts, count, runs);
  while (bytes < kFollowedBytes && count > 1) {
    const size_t half = count / 2;
    if (const size_t distance = Distance(runs, runs + 1, 2, half, bytes)) {
      for (size_t i = 0; i < half; ++i) runs[i] = runs[2 * i];
      bytes += distance;
    } else if (const size_t across =
                   Distance(runs, runs + half, 1, half, bytes)) {
      bytes += across;
    } else {
      break;
    }
    count = half;
  }
  AddGroup(runs, count, bytes);
}

void PrefetchList::AddGroup(const uint8_t* const* runs, size_t count,
                            size_t bytes) {
  PrefetchGroup& group = groups_[num_groups_++];
  const size_t lines = PrefetchGroup::kLines / count;
  for (size_t i = 0; i < PrefetchGroup::kLines; ++i) {
    group.lines[i] = runs[i / lines] + i % lines * kLineBytes;
  }
  group.step = lines * kLineBytes;
  group.bytes = bytes;
}

// A run for every row.
void PrefetchList::AddRows(const uint8_t* const* rows, size_t row_bytes) {
  constexpr size_t kRuns = PrefetchGroup::kLines;
  constexpr size_t kSteps = kChunkTokens / kRuns;
  for (size_t i = 0; i < kSteps; ++i) {
    const uint8_t* runs[kRuns];
    for (size_t r = 0; r < kRuns; ++r) runs[r] = rows[r * kSteps + i];
    AddGroup(runs, kRuns, row_bytes);
  }
}

}  // namespace paged_kv::attention::internal
