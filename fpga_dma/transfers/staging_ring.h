// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_STAGING_RING_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_STAGING_RING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/owned_slab.h"
#include "fpga_dma/transfers/scatter_list.h"

namespace paged_kv::fpga_dma {

// A few equal host-visible slabs in one bank, each with a small one for lists
// in another. A pair belongs to whoever took it until it is given back, across
// any number of calls: nothing is packed into a slab that the card may still
// read.
//
// Thread safety: thread-compatible.
class StagingRing {
 public:
  // As Device::CreateSlab; on error what was allocated is given back.
  // `device` outlives the ring.
  static absl::StatusOr<StagingRing> Create(Device* device, uint32_t slabs,
                                            BankId bank, uint64_t bytes,
                                            BankId list_bank,
                                            uint64_t list_bytes);
  StagingRing(StagingRing&&) noexcept = default;
  StagingRing& operator=(StagingRing&&) = delete;
  // REQUIRES: no operation on the slabs is pending.
  ~StagingRing() = default;

  size_t num_free() const { return free_.size(); }
  size_t size() const { return entries_.size(); }
  // REQUIRES: num_free() > 0.
  uint32_t Take();
  void GiveBack(uint32_t index);

  StagingSlabs slabs(uint32_t index) const {
    return {entries_[index].data_slab.id(), entries_[index].lists_slab.id()};
  }
  // Their host-side images, the device's.
  absl::Span<std::byte> data(uint32_t index) const {
    return entries_[index].data;
  }
  absl::Span<std::byte> lists(uint32_t index) const {
    return entries_[index].lists;
  }

 private:
  struct Entry {
    OwnedSlab data_slab;
    OwnedSlab lists_slab;
    absl::Span<std::byte> data;
    absl::Span<std::byte> lists;
  };

  StagingRing() = default;

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_STAGING_RING_H_
