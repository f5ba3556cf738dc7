// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_CHECKSUMS_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_CHECKSUMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "fpga_dma/pool_geometry.h"

namespace paged_kv::fpga_dma {

// What is known of the contents of device pages, by page, layer and stripe:
// the CRC32C of what was uploaded, until a kernel writes there; and which were
// lost, by a reset or by an upload that failed. 5 bytes each.
//
// Thread safety: thread-compatible.
class PageChecksums {
 public:
  // At first no checksum is known, and nothing counts as lost.
  explicit PageChecksums(const PoolGeometry& geometry);

  bool Lost(uint32_t page, uint32_t layer, uint32_t stripe) const {
    return states_[Index(page, layer, stripe)] == State::kLost;
  }
  absl::optional<uint32_t> Get(uint32_t page, uint32_t layer,
                               uint32_t stripe) const {
    const size_t i = Index(page, layer, stripe);
    if (states_[i] != State::kKnown) return absl::nullopt;
    return checksums_[i];
  }
  void Set(uint32_t page, uint32_t layer, uint32_t stripe, uint32_t checksum) {
    const size_t i = Index(page, layer, stripe);
    states_[i] = State::kKnown;
    checksums_[i] = checksum;
  }
  void SetLost(uint32_t page, uint32_t layer, uint32_t stripe) {
    states_[Index(page, layer, stripe)] = State::kLost;
  }
  // A kernel wrote there: the contents are good and not known.
  void SetWritten(uint32_t page, LayerRange layers);
  void SetAllLost();

 private:
  enum class State : uint8_t { kUnknown, kKnown, kLost };

  size_t Index(uint32_t page, uint32_t layer, uint32_t stripe) const {
    return (size_t{page} * layers_ + layer) * stripes_ + stripe;
  }

  const uint32_t layers_;
  const uint32_t stripes_;
  std::vector<State> states_;        // [pages, layers, stripes]
  std::vector<uint32_t> checksums_;  // [pages, layers, stripes]
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_PAGE_CHECKSUMS_H_
