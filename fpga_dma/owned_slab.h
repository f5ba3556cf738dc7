// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_OWNED_SLAB_H_
#define PAGED_KV_FPGA_DMA_OWNED_SLAB_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

// A slab that is given back at the end of its owner's life. REQUIRES then: the
// device still exists and no operation on the slab is pending.
class OwnedSlab {
 public:
  // As Device::CreateSlab().
  static absl::StatusOr<OwnedSlab> Create(Device* device, BankId bank,
                                          uint64_t bytes, SlabKind kind);
  OwnedSlab() = default;
  OwnedSlab(OwnedSlab&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), id_(other.id_) {}
  OwnedSlab& operator=(OwnedSlab&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~OwnedSlab();

  SlabId id() const { return id_; }

 private:
  OwnedSlab(Device* device, SlabId id) : device_(device), id_(id) {}

  Device* device_ = nullptr;
  SlabId id_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_OWNED_SLAB_H_
