// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_CHECKSUM_H_
#define PAGED_KV_FPGA_DMA_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace paged_kv::fpga_dma {

// CRC32C (Castagnoli polynomial, RFC 3720 appendix B.4) of `bytes`. It finds
// every burst of up to 32 flipped bits, and misses other damage once in 2^32.
uint32_t Crc32c(absl::Span<const std::byte> bytes);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CHECKSUM_H_
