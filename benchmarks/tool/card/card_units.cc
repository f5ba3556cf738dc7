// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_units.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "benchmarks/tool/card/decode_probe.h"
#include "fpga_dma/kernels/kernel_arguments.h"

namespace paged_kv::tool {

absl::StatusOr<DecodeUnits> FindDecodeUnits(const fpga_dma::DeviceInfo& info,
                                            uint32_t kv_heads) {
  std::vector<fpga_dma::BankId> banks;
  for (uint32_t unit : DecodeProbe::Units(info)) {
    const fpga_dma::BankId bank =
        info.compute_units[unit].argument_banks[static_cast<size_t>(
            fpga_dma::PagedDecodeArgument::kKv)];
    if (std::find(banks.begin(), banks.end(), bank) == banks.end()) {
      banks.push_back(bank);
    }
  }
  if (banks.empty()) {
    return absl::FailedPreconditionError(
        "the card's design has no paged_decode; load the project's "
        "(docs/fpga.md says how to build it)");
  }
  DecodeUnits result;
  const auto count = static_cast<uint32_t>(banks.size());
  result.stripes = std::min(kv_heads, count);
  result.splits = count / result.stripes;
  banks.resize(size_t{result.stripes} * result.splits);
  result.banks = std::move(banks);
  return result;
}

}  // namespace paged_kv::tool
