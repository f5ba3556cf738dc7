// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How pages lie on a card. See docs/card_transfers.md for pictures.

#ifndef PAGED_KV_FPGA_DMA_POOL_GEOMETRY_H_
#define PAGED_KV_FPGA_DMA_POOL_GEOMETRY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::fpga_dma {

// Layers [first, first + count) of a layer group.
struct LayerRange {
  uint32_t first = 0;
  uint32_t count = 0;

  uint32_t end() const { return first + count; }
};
inline bool Overlap(LayerRange a, LayerRange b) {
  return a.first < b.end() && b.first < a.end();
}

// Pages cut into stripes and dealt out to splits, so that each compute unit
// reads banks of its own:
//
// - stripe s holds KV heads FirstHead(s) .. FirstHead(s + 1) - 1 of every page;
// - split t holds pages t * n .. (t + 1) * n - 1, n = num_pages / splits. Who
//   hands out pages takes the split of a block's place in its sequence, modulo
//   the splits, so that a sequence keeps all of them busy.
//
// The slots of one (stripe, split) lie in a row. In a slot, layer after layer
// of `LayerStride(s)` bytes: the heads of the stripe as in an own page (K data,
// K scales, V data, V scales), then zeros up to the device's alignment.
//
// A plain value. Callers keep indices in range.
class PoolGeometry {
 public:
  // InvalidArgument, with the numbers, unless the shape is valid,
  // 1 <= stripes <= kv_heads, 1 <= num_pages < 2^31 is a multiple of splits,
  // and alignment_bytes is a power of two.
  static absl::StatusOr<PoolGeometry> Create(const BlockShape& shape,
                                             uint32_t num_pages,
                                             uint32_t stripes, uint32_t splits,
                                             uint64_t alignment_bytes);

  const BlockShape& shape() const { return shape_; }
  uint32_t num_pages() const { return num_pages_; }
  uint32_t stripes() const { return stripes_; }
  uint32_t splits() const { return splits_; }

  uint32_t SplitPages() const { return num_pages_ / splits_; }
  uint32_t Split(uint32_t page) const { return page / SplitPages(); }
  // The index by which kernels find the page in its (stripe, split).
  uint32_t Slot(uint32_t page) const { return page % SplitPages(); }

  uint32_t FirstHead(uint32_t stripe) const {
    return static_cast<uint32_t>(uint64_t{stripe} * shape_.kv_heads / stripes_);
  }
  uint32_t Heads(uint32_t stripe) const {
    return FirstHead(stripe + 1) - FirstHead(stripe);
  }

  // K, V and scales of one head of one layer.
  uint64_t HeadBytes() const { return head_bytes_; }
  // What a layer of a stripe holds, and the bytes to the next layer.
  uint64_t LayerBytes(uint32_t stripe) const {
    return head_bytes_ * Heads(stripe);
  }
  uint64_t LayerStride(uint32_t stripe) const {
    return (LayerBytes(stripe) + alignment_bytes_ - 1) &
           ~(alignment_bytes_ - 1);
  }
  uint64_t PageStride(uint32_t stripe) const {
    return LayerStride(stripe) * shape_.layers;
  }
  // Of one (stripe, split).
  uint64_t SlabBytes(uint32_t stripe) const {
    return PageStride(stripe) * SplitPages();
  }
  // Of a layer of a page in the slab of (stripe, Split(page)).
  uint64_t Offset(uint32_t page, uint32_t stripe, uint32_t layer) const {
    return Slot(page) * PageStride(stripe) + layer * LayerStride(stripe);
  }

 private:
  PoolGeometry() = default;

  BlockShape shape_;
  uint32_t num_pages_ = 0;
  uint32_t stripes_ = 1;
  uint32_t splits_ = 1;
  uint64_t alignment_bytes_ = 1;
  uint64_t head_bytes_ = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_POOL_GEOMETRY_H_
