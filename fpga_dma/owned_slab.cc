// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/owned_slab.h"

#include "absl/status/status.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

absl::StatusOr<OwnedSlab> OwnedSlab::Create(Device* device, BankId bank,
                                            uint64_t bytes, SlabKind kind) {
  PAGED_KV_ASSIGN_OR_RETURN(const SlabId id,
                            device->CreateSlab(bank, bytes, kind));
  return OwnedSlab(device, id);
}

OwnedSlab::~OwnedSlab() {
  // Only a device that is gone refuses, and with it went the slab.
  if (device_ != nullptr) device_->DestroySlab(id_).IgnoreError();
}

}  // namespace paged_kv::fpga_dma
