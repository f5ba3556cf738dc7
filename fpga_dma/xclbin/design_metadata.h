// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_XCLBIN_DESIGN_METADATA_H_
#define PAGED_KV_FPGA_DMA_XCLBIN_DESIGN_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "fpga_dma/xclbin/xclbin_writer.h"

namespace paged_kv::fpga_dma::xclbin {

// The address range of one unit's registers, and the first unit's.
inline constexpr uint64_t kUnitRegisterBytes = 0x10000;
inline constexpr uint64_t kFirstUnitAddress = 0x10000;

// Where unit `index`'s registers lie.
inline uint64_t UnitAddress(size_t index) {
  return kFirstUnitAddress + index * kUnitRegisterBytes;
}

// The XML from which XRT learns the kernels, their arguments and registers.
// The elements and attributes are those that xclbin_parser of XRT 2.13 reads.
// Names need no escaping: PackXclbin() refuses those that would.
std::string EmbeddedMetadata(const Design& design);

}  // namespace paged_kv::fpga_dma::xclbin

#endif  // PAGED_KV_FPGA_DMA_XCLBIN_DESIGN_METADATA_H_
