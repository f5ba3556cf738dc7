// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_DECODE_PROBE_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_DECODE_PROBE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fpga_dma/device.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/owned_slab.h"

namespace paged_kv::tool {

// Launches of one compute unit of paged_decode that are bound by reading pages:
// one query head per KV head, head_dim 128, blocks of 16 tokens in random
// order, so that K and V come in slices of 4 KiB. The values are random.
class DecodeProbe {
 public:
  static constexpr uint32_t kHeadDim = 128;
  static constexpr uint32_t kBlockTokens = 16;
  static constexpr uint64_t kPageBytes =
      fpga_dma::SliceBeats(kBlockTokens, kHeadDim) * fpga_dma::kBeatBytes;
  static constexpr uint32_t kPages = 512;

  // The compute units of paged_decode.
  static std::vector<uint32_t> Units(const fpga_dma::DeviceInfo& info);

  // Takes memory in the banks of `unit`, fills and uploads it. `device`
  // outlives the probe.
  static absl::StatusOr<std::unique_ptr<DecodeProbe>> Create(
      fpga_dma::Device* device, uint32_t unit, uint64_t seed);

  // The next launches read `pages` pages. REQUIRES: 1 <= pages <= kPages.
  absl::Status Prepare(uint32_t pages);
  absl::StatusOr<fpga_dma::OpId> Start();
  // What the kernel says of the launches since Prepare().
  absl::Status CheckStatus();

  fpga_dma::BankId bank() const { return bank_; }

 private:
  DecodeProbe(fpga_dma::Device* device, uint32_t unit)
      : device_(device), unit_(unit) {}
  absl::Status Setup(uint64_t seed);
  absl::StatusOr<fpga_dma::OwnedSlab> MakeSlab(uint32_t argument,
                                               uint64_t bytes);
  absl::Status Upload(const fpga_dma::OwnedSlab& slab, uint64_t bytes);

  fpga_dma::Device* const device_;
  const uint32_t unit_;
  fpga_dma::BankId bank_;
  fpga_dma::OwnedSlab pages_, work_, table_, queries_, out_, status_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_DECODE_PROBE_H_
