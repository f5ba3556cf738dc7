// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_READY_PIECES_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_READY_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"

namespace paged_kv::fpga_dma {

// A run of bytes in a slab that may move now.
struct ReadyPiece {
  uint64_t offset = 0;  // in the slab
  uint32_t item = 0;    // the caller's name of what it belongs to
  uint64_t bytes = 0;

  uint64_t end() const { return offset + bytes; }
};
inline bool operator<(const ReadyPiece& a, const ReadyPiece& b) {
  return a.offset != b.offset ? a.offset < b.offset : a.item < b.item;
}

// Pieces that go by one descriptor.
struct PieceGroup {
  uint32_t slab = 0;
  bool packed = false;  // through a staging slab; else neighbours
  std::vector<ReadyPiece> pieces;
};

struct GroupingLimits {
  // Neighbours that are shorter together than this are packed with others.
  uint64_t min_extent_bytes = 0;
  uint64_t max_extent_bytes = 0;
  // As few pieces as this are not worth a launch.
  size_t max_lone_pieces = 0;
  // What a staging slab takes.
  uint64_t staging_bytes = 0;
  size_t max_packed_pieces = 0;
};

// How the pieces of a slab may move just now.
struct SlabWays {
  bool extents = false;
  bool packing = false;       // at all
  bool staging_free = false;  // a staging slab is free for it now
};

// The pieces of one direction and priority that wait for a channel, by slab.
// Each slab is swept in the order of its memory, where it was left, so that
// neighbours meet and none waits for more than one sweep; slabs take turns.
//
// Thread safety: thread-compatible.
class ReadyPieces {
 public:
  explicit ReadyPieces(size_t num_slabs);

  void Add(uint32_t slab, const ReadyPiece& piece);
  // Whether it was there.
  bool Remove(uint32_t slab, const ReadyPiece& piece);
  size_t size() const { return size_; }

  // Takes out what goes next; a group without pieces if nothing can.
  PieceGroup Take(const GroupingLimits& limits,
                  absl::FunctionRef<SlabWays(uint32_t slab)> ways);

 private:
  struct Slab {
    absl::btree_set<ReadyPiece> pieces;
    uint64_t sweep = 0;  // go on at this offset
  };

  // The first pieces at the sweep that are neighbours, up to max_bytes.
  static std::vector<ReadyPiece> NextRun(const Slab& slab, uint64_t max_bytes);
  static std::vector<ReadyPiece> NextPack(const Slab& slab,
                                          const GroupingLimits& limits);
  void TakeOut(Slab* slab, const std::vector<ReadyPiece>& pieces);

  std::vector<Slab> slabs_;
  size_t next_slab_ = 0;
  size_t size_ = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_READY_PIECES_H_
