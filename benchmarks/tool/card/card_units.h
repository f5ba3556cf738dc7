// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_UNITS_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_UNITS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

// How a pool is cut so that it keeps as many units of paged_decode busy as it
// can, a bank each: stripes first, since a stripe's heads need no merging.
struct DecodeUnits {
  uint32_t stripes = 1;
  uint32_t splits = 1;
  std::vector<fpga_dma::BankId> banks;  // [stripes * splits], of the pages
};

// FailedPrecondition if the design has no paged_decode.
absl::StatusOr<DecodeUnits> FindDecodeUnits(const fpga_dma::DeviceInfo& info,
                                            uint32_t kv_heads);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_UNITS_H_
