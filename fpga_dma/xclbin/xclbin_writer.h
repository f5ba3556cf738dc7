// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packs the description of a card's design into an xclbin that XRT loads. For
// emulated cards: a real card's xclbin comes from v++ and holds a bitstream.
// (Debian's xclbinutil, which packs both, is a wrapper that does not start.)

#ifndef PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_WRITER_H_
#define PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fpga_dma/xclbin/xclbin_format.h"

namespace paged_kv::fpga_dma::xclbin {

struct DesignArgument {
  std::string name;
  bool is_address = false;
  uint32_t width_bytes = 4;  // of its register; 8 for an address
};
struct DesignKernel {
  std::string name;
  std::vector<DesignArgument> arguments;
};
struct DesignMemory {
  std::string tag;  // "HBM[3]", at most 15 characters
  MemoryType type = MemoryType::kDdr4;
  uint64_t bytes = 0;
  uint64_t base_address = 0;
};
struct DesignUnit {
  std::string kernel;
  std::string instance;
  // For each argument the index in Design::memories, -1 for scalars.
  std::vector<int32_t> argument_memories;  // [arguments]
};
struct Design {
  std::string platform;  // "xilinx_u280_...", at most 63 characters
  uint32_t clock_mhz = 300;
  std::vector<DesignMemory> memories;
  std::vector<DesignKernel> kernels;
  std::vector<DesignUnit> units;
  std::string bitstream;  // what the emulated card reads; not empty
};

// Where the register of each argument lies in a unit's control interface, as
// Vitis HLS lays out s_axilite: from 0x10 on, a 32-bit argument takes 8 bytes
// and a 64-bit one 12 (UG1399, "S_AXILITE Offset"). [arguments]
std::vector<uint32_t> RegisterOffsets(
    absl::Span<const DesignArgument> arguments);

// The file's bytes; the same design gives the same bytes and uuid.
// InvalidArgument for a design that cannot be expressed: an unknown kernel or
// memory, a name that is too long or holds other characters than letters,
// digits and _[]-. , a memory that is no multiple of 1 KiB.
absl::StatusOr<std::vector<char>> PackXclbin(const Design& design);

}  // namespace paged_kv::fpga_dma::xclbin

#endif  // PAGED_KV_FPGA_DMA_XCLBIN_XCLBIN_WRITER_H_
