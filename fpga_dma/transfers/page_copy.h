// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Between host pages, which hold all KV heads of a layer, and the stripes of a
// device pool, which hold some.

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_COPY_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_COPY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "attention/kv_pages.h"
#include "fpga_dma/pool_geometry.h"

namespace paged_kv::fpga_dma {

// InvalidArgument, with the numbers, unless `host` is valid, has the shape of
// `geometry` and holds each slice (K of a head, V of a head) as an own page
// does: same order, no gaps between tokens. Pages, layers, heads and K and V
// may lie anywhere.
absl::Status CheckHostPages(const attention::KvPages& host,
                            const PoolGeometry& geometry);

// Copies one layer of `stripe` of host page `page` to `to`
// [LayerStride(stripe)], which ends in zeros. Callers keep indices in range.
void GatherLayer(const attention::KvPages& host, const PoolGeometry& geometry,
                 uint32_t page, uint32_t layer, uint32_t stripe, std::byte* to);

// The reverse; touches no byte of other stripes, layers or pages.
void ScatterLayer(const std::byte* from, const attention::KvPages& host,
                  const PoolGeometry& geometry, uint32_t page, uint32_t layer,
                  uint32_t stripe);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_COPY_H_
