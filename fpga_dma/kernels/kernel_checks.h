// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scalars of a launch promise about its memory. Host code of the
// kernel registry.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_KERNEL_CHECKS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_KERNEL_CHECKS_H_

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_registry.h"

namespace paged_kv::fpga_dma {

// The argument `index`, of one of the enums of kernel_arguments.h.
template <typename Index>
uint32_t Scalar(absl::Span<const BoundArgument> arguments, Index index) {
  return static_cast<uint32_t>(arguments[static_cast<size_t>(index)].value);
}
template <typename Beat, typename Index>
Beat* Address(absl::Span<const BoundArgument> arguments, Index index) {
  return reinterpret_cast<Beat*>(
      arguments[static_cast<size_t>(index)].memory.data());
}

// The item `index` of a work list, whose memory was checked.
template <typename Item, typename Index>
Item WorkItem(absl::Span<const BoundArgument> arguments, Index work,
              uint64_t index) {
  static_assert(sizeof(Item) == kBeatBytes);
  Item item;
  std::memcpy(&item,
              Address<std::byte>(arguments, work) + (1 + index) * kBeatBytes,
              sizeof(item));
  return item;
}

// InvalidArgument or OutOfRange as KernelSpec::run says, or OK.
absl::Status CheckArguments(const KernelSpec& kernel,
                            absl::Span<const BoundArgument> arguments);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_KERNEL_CHECKS_H_
