// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/ready_pieces.h"

#include <utility>

#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

uint64_t TotalBytes(const std::vector<ReadyPiece>& pieces) {
  uint64_t bytes = 0;
  for (const ReadyPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

}  // namespace

ReadyPieces::ReadyPieces(size_t num_slabs) : slabs_(num_slabs) {}

void ReadyPieces::Add(uint32_t slab, const ReadyPiece& piece) {
  const bool inserted = slabs_[slab].pieces.insert(piece).second;
  PAGED_KV_CHECK(inserted);
  ++size_;
}

bool ReadyPieces::Remove(uint32_t slab, const ReadyPiece& piece) {
  const size_t erased = slabs_[slab].pieces.erase(piece);
  size_ -= erased;
  return erased == 1;
}

PieceGroup ReadyPieces::Take(const GroupingLimits& limits,
                             absl::FunctionRef<SlabWays(uint32_t slab)> ways) {
  PieceGroup group;
  for (size_t i = 0; size_ > 0 && i < slabs_.size(); ++i) {
    const size_t index = (next_slab_ + i) % slabs_.size();
    Slab& slab = slabs_[index];
    if (slab.pieces.empty()) continue;
    group.slab = static_cast<uint32_t>(index);
    const SlabWays can = ways(group.slab);
    if (can.extents) {
      group.pieces = NextRun(slab, limits.max_extent_bytes);
      const bool whole = !can.packing ||
                         slab.pieces.size() <= limits.max_lone_pieces ||
                         TotalBytes(group.pieces) >= limits.min_extent_bytes;
      if (!whole) group.pieces.clear();
    }
    if (group.pieces.empty() && can.packing && can.staging_free) {
      group.pieces = NextPack(slab, limits);
      group.packed = true;
    }
    if (group.pieces.empty()) continue;
    TakeOut(&slab, group.pieces);
    next_slab_ = index + 1;
    return group;
  }
  return group;
}

std::vector<ReadyPiece> ReadyPieces::NextRun(const Slab& slab,
                                             uint64_t max_bytes) {
  auto it = slab.pieces.lower_bound(ReadyPiece{slab.sweep, 0, 0});
  if (it == slab.pieces.end()) it = slab.pieces.begin();
  std::vector<ReadyPiece> run = {*it};
  uint64_t bytes = it->bytes;
  for (++it; it != slab.pieces.end() && it->offset == run.back().end() &&
             bytes + it->bytes <= max_bytes;
       ++it) {
    bytes += it->bytes;
    run.push_back(*it);
  }
  return run;
}

std::vector<ReadyPiece> ReadyPieces::NextPack(const Slab& slab,
                                              const GroupingLimits& limits) {
  std::vector<ReadyPiece> pack;
  uint64_t bytes = 0;
  auto it = slab.pieces.lower_bound(ReadyPiece{slab.sweep, 0, 0});
  for (size_t i = 0; i < slab.pieces.size(); ++i, ++it) {
    if (it == slab.pieces.end()) it = slab.pieces.begin();
    // One fits at any rate: the caller cuts pieces to a slab's size.
    if (i > 0 && bytes + it->bytes > limits.staging_bytes) break;
    if (pack.size() == limits.max_packed_pieces) break;
    bytes += it->bytes;
    pack.push_back(*it);
  }
  return pack;
}

void ReadyPieces::TakeOut(Slab* slab, const std::vector<ReadyPiece>& pieces) {
  for (const ReadyPiece& piece : pieces) slab->pieces.erase(piece);
  size_ -= pieces.size();
  slab->sweep = pieces.back().offset + 1;
}

}  // namespace paged_kv::fpga_dma
