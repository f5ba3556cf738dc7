// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_GATHER_H_
#define PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_GATHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/rtl_engine/port_memory.h"

namespace paged_kv::fpga_dma {

// One launch of kv_gather. Page p is at pool + p * page_stride_beats * 64.
struct GatherJob {
  absl::Span<const std::byte> pool;  // at least of all pages; not owned
  uint32_t num_pages = 0;
  uint32_t page_stride_beats = 0;
  uint32_t slice_beat = 0;
  uint32_t slice_beats = 0;
  absl::Span<const uint32_t> pages;  // the table, at least one entry
};

using GatheredBeat = std::array<std::byte, kBeatBytes>;

// Runs the RTL kernel to its end: registers written, started, clocked, status
// read, all through the pins that XRT and the memory have on a card. Appends
// the beats of its stream to `beats` and adds the cycles of the launch, as the
// kernel counts them, to `cycles`.
//
// Errors: InvalidArgument for what the kernel finds wrong, with its code, the
// table entry and the value, as of the HLS kernels; then a part of the beats
// may be there. Internal if it does not come to an end.
absl::Status RunRtlGather(const GatherJob& job, const PortTiming& timing,
                          std::vector<GatheredBeat>* beats, uint64_t* cycles);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_RTL_ENGINE_RTL_GATHER_H_
