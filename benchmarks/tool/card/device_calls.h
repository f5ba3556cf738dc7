// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

// Waits for `op`, the only operation under way on `device`. Its error if it
// failed; DeadlineExceeded if it has not ended after ten seconds of the
// device's clock.
absl::StatusOr<fpga_dma::Completion> AwaitOperation(fpga_dma::Device& device,
                                                    fpga_dma::OpId op);

// A slab that is given back. The device outlives it.
class OwnedSlab {
 public:
  static absl::StatusOr<OwnedSlab> Create(fpga_dma::Device* device,
                                          fpga_dma::BankId bank, uint64_t bytes,
                                          fpga_dma::SlabKind kind);
  OwnedSlab() = default;
  OwnedSlab(OwnedSlab&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), id_(other.id_) {}
  OwnedSlab& operator=(OwnedSlab&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~OwnedSlab();

  fpga_dma::SlabId id() const { return id_; }

 private:
  OwnedSlab(fpga_dma::Device* device, fpga_dma::SlabId id)
      : device_(device), id_(id) {}

  fpga_dma::Device* device_ = nullptr;
  fpga_dma::SlabId id_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_DEVICE_CALLS_H_
