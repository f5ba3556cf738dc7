// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace paged_kv::fpga_dma {

uint32_t Crc32c(absl::Span<const std::byte> bytes) {
  // The library takes lengths as int and leaves both inversions to its caller.
  constexpr size_t kPiece = size_t{1} << 30;
  uint32_t crc = ~uint32_t{0};
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kPiece);
    // It never writes; its parameter only lacks the const.
    auto* data =
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes.remove_prefix(n);
  }
  return ~crc;
}

}  // namespace paged_kv::fpga_dma
