// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_DEVICE_POOL_H_
#define PAGED_KV_FPGA_DMA_DEVICE_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/owned_slab.h"
#include "fpga_dma/pool_geometry.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::fpga_dma {

struct DevicePoolOptions {
  BlockShape shape;
  uint32_t num_pages = 0;
  uint32_t stripes = 1;  // 1 .. kv_heads; see PoolGeometry
  uint32_t splits = 1;
  // Bank of the slab of (stripe, split), at stripe * splits + split. Empty:
  // banks 0, 1, 2, ... in that order, as far as the device has that many.
  std::vector<BankId> banks;
  // kHostVisible: runs of neighbours move between the slab's host-side image
  // and the card by one descriptor. kDeviceOnly: no image, everything goes
  // through staging slabs and device kernels.
  SlabKind kind = SlabKind::kHostVisible;
};

// The pages of one layer group on a device: one slab per stripe and split.
// Which page holds what is its users' business.
//
// Thread safety: const after Create(); the slabs are the device's.
class DevicePool {
 public:
  // Allocates the slabs. `device` outlives the pool.
  // InvalidArgument for a geometry that cannot be or banks that are not there;
  // the device's error, ResourceExhausted if a bank is full, after what was
  // allocated has been given back.
  static absl::StatusOr<std::unique_ptr<DevicePool>> Create(
      Device* device, const DevicePoolOptions& options);
  // Gives the slabs back. REQUIRES: no operation on them is pending.
  ~DevicePool() = default;
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  const PoolGeometry& geometry() const { return geometry_; }
  uint32_t num_pages() const { return geometry_.num_pages(); }
  SlabKind kind() const { return kind_; }
  Device* device() const { return device_; }

  uint32_t num_slabs() const { return static_cast<uint32_t>(slabs_.size()); }
  // Index of the slab that holds `stripe` of `page`.
  uint32_t SlabIndex(uint32_t page, uint32_t stripe) const {
    return stripe * geometry_.splits() + geometry_.Split(page);
  }
  uint32_t SlabStripe(uint32_t index) const {
    return index / geometry_.splits();
  }
  SlabId slab(uint32_t index) const { return slabs_[index].id(); }
  BankId bank(uint32_t index) const { return banks_[index]; }

  // Where `layers` of `stripe` of `page` lie: one run. Callers keep indices in
  // range.
  SlabRange Range(uint32_t page, uint32_t stripe, LayerRange layers) const {
    return {slabs_[SlabIndex(page, stripe)].id(),
            geometry_.Offset(page, stripe, layers.first),
            geometry_.LayerStride(stripe) * layers.count};
  }

  // OutOfRange, with the numbers, unless the pool has the page and the layers,
  // of which there is at least one.
  absl::Status CheckRange(uint32_t page, LayerRange layers) const;

 private:
  DevicePool(Device* device, const PoolGeometry& geometry, SlabKind kind)
      : device_(device), geometry_(geometry), kind_(kind) {}

  Device* const device_;
  const PoolGeometry geometry_;
  const SlabKind kind_;
  std::vector<OwnedSlab> slabs_;  // [stripes * splits]
  std::vector<BankId> banks_;     // [stripes * splits]
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_DEVICE_POOL_H_
