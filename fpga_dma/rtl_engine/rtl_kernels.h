// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_KERNELS_H_
#define PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/rtl_engine/port_memory.h"

namespace paged_kv::fpga_dma {

// What the RTL did in a launch.
struct RtlWork {
  uint64_t launches = 0;  // of kv_gather
  uint64_t cycles = 0;    // of these, as the kernel counts them
  uint64_t beats = 0;     // that it streamed
};

// KernelSpec::run of paged_decode, with the Verilated kv_gather in the place of
// the stage that reads K and V: results and status word are those of
// paged_decode, to the bit. kv_gather streams whole slices, one launch for all
// neighbouring items of the same slice; what a page holds beyond an item's
// slots is dropped.
//
// Errors as KernelSpec::run; Internal, with kv_gather's own error, if the RTL
// refuses or fails at what the stages before it found good.
//
// Thread safety: thread-safe, under the rule of KernelSpec.
absl::Status RunRtlPagedDecode(absl::Span<const BoundArgument> arguments,
                               const PortTiming& timing, RtlWork* work);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_KERNELS_H_
