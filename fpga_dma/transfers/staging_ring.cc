// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/staging_ring.h"

#include <algorithm>

#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

absl::StatusOr<StagingRing> StagingRing::Create(Device* device, uint32_t slabs,
                                                BankId bank, uint64_t bytes,
                                                BankId list_bank,
                                                uint64_t list_bytes) {
  StagingRing ring;
  const auto create = [&](BankId in, uint64_t size, OwnedSlab* slab,
                          absl::Span<std::byte>* image) -> absl::Status {
    PAGED_KV_ASSIGN_OR_RETURN(
        *slab, OwnedSlab::Create(device, in, size, SlabKind::kHostVisible));
    PAGED_KV_ASSIGN_OR_RETURN(*image, device->HostImage(slab->id()));
    return absl::OkStatus();
  };
  for (uint32_t i = 0; i < slabs; ++i) {
    Entry& entry = ring.entries_.emplace_back();
    PAGED_KV_RETURN_IF_ERROR(
        create(bank, bytes, &entry.data_slab, &entry.data));
    PAGED_KV_RETURN_IF_ERROR(
        create(list_bank, list_bytes, &entry.lists_slab, &entry.lists));
    ring.free_.push_back(slabs - 1 - i);
  }
  return ring;
}

uint32_t StagingRing::Take() {
  PAGED_KV_CHECK(!free_.empty());
  const uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void StagingRing::GiveBack(uint32_t index) {
  PAGED_KV_CHECK(index < entries_.size());
  PAGED_KV_CHECK(std::find(free_.begin(), free_.end(), index) == free_.end());
  free_.push_back(index);
}

}  // namespace paged_kv::fpga_dma
