// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/device_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

absl::StatusOr<std::vector<BankId>> ChooseBanks(
    const DeviceInfo& info, const DevicePoolOptions& options) {
  const uint64_t slabs = uint64_t{options.stripes} * options.splits;
  std::vector<BankId> banks = options.banks;
  if (banks.empty()) {
    for (uint64_t i = 0; i < slabs && i < info.banks.size(); ++i) {
      banks.push_back(BankId(static_cast<uint32_t>(i)));
    }
  }
  if (banks.size() != slabs) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.stripes, " stripes and ", options.splits,
                     " splits need ", slabs, " banks, there are ", banks.size(),
                     " of the ", info.banks.size(), " of ", info.name));
  }
  for (BankId bank : banks) {
    if (bank.value() >= info.banks.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("bank ", bank.value(), " of a pool, ", info.name,
                       " has ", info.banks.size()));
    }
  }
  return banks;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DevicePool>> DevicePool::Create(
    Device* device, const DevicePoolOptions& options) {
  const DeviceInfo& info = device->info();
  PAGED_KV_ASSIGN_OR_RETURN(
      const PoolGeometry geometry,
      PoolGeometry::Create(
          options.shape, options.num_pages, options.stripes, options.splits,
          std::max<uint64_t>(info.alignment_bytes, kBeatBytes)));
  PAGED_KV_ASSIGN_OR_RETURN(std::vector<BankId> banks,
                            ChooseBanks(info, options));
  // Not make_unique: the constructor is private.
  std::unique_ptr<DevicePool> pool(
      new DevicePool(device, geometry, options.kind));
  for (size_t i = 0; i < banks.size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    const uint32_t stripe = index / geometry.splits();
    PAGED_KV_ASSIGN_OR_RETURN(
        OwnedSlab slab,
        OwnedSlab::Create(device, banks[i], geometry.SlabBytes(stripe),
                          options.kind));
    pool->slabs_.push_back(std::move(slab));
  }
  pool->banks_ = std::move(banks);
  return pool;
}

absl::Status DevicePool::CheckRange(uint32_t page, LayerRange layers) const {
  if (page >= num_pages()) {
    return absl::OutOfRangeError(
        absl::StrCat("page ", page, " of a device pool of ", num_pages()));
  }
  const uint32_t all = geometry_.shape().layers;
  if (layers.count == 0 || layers.count > all ||
      layers.first > all - layers.count) {
    return absl::OutOfRangeError(absl::StrCat("layers ", layers.first, " + ",
                                              layers.count, " of a pool of ",
                                              all, " layers"));
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::fpga_dma
