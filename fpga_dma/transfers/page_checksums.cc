// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/page_checksums.h"

#include <algorithm>

namespace paged_kv::fpga_dma {

PageChecksums::PageChecksums(const PoolGeometry& geometry)
    : layers_(geometry.shape().layers),
      stripes_(geometry.stripes()),
      states_(size_t{geometry.num_pages()} * layers_ * stripes_,
              State::kUnknown),
      checksums_(states_.size()) {}

void PageChecksums::SetWritten(uint32_t page, LayerRange layers) {
  const auto first =
      states_.begin() + static_cast<ptrdiff_t>(Index(page, layers.first, 0));
  std::fill_n(first, size_t{layers.count} * stripes_, State::kUnknown);
}

void PageChecksums::SetAllLost() {
  std::fill(states_.begin(), states_.end(), State::kLost);
}

}  // namespace paged_kv::fpga_dma
