// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_units.h"

#include <algorithm>

#include "absl/status/status.h"
#include "benchmarks/tool/card/decode_probe.h"
#include "fpga_dma/kernels/kernel_arguments.h"

namespace paged_kv::tool {

absl::StatusOr<DecodeUnits> FindDecodeUnits(const fpga_dma::DeviceInfo& info,
                                            uint32_t kv_heads) {
  const std::vector<uint32_t> units = DecodeProbe::Units(info);
  if (units.empty()) {
    return absl::FailedPreconditionError(
        "the card's design has no paged_decode; load the project's "
        "(docs/fpga.md says how to build it)");
  }
  DecodeUnits result;
  const auto count = static_cast<uint32_t>(units.size());
  result.stripes = std::min(kv_heads, count);
  result.splits = count / result.stripes;
  for (uint32_t i = 0; i < result.stripes * result.splits; ++i) {
    result.banks.push_back(
        info.compute_units[units[i]].argument_banks[static_cast<size_t>(
            fpga_dma::PagedDecodeArgument::kKv)]);
  }
  return result;
}

}  // namespace paged_kv::tool
