// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_BLOCKING_DEVICE_H_
#define PAGED_KV_FPGA_DMA_BLOCKING_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fpga_dma/blocking_card.h"
#include "fpga_dma/call_lanes.h"
#include "fpga_dma/device.h"

namespace paged_kv::fpga_dma {

// A Device over a card whose calls block: checks arguments, owns the host
// images of slabs, and makes each call on the thread of its lane: one per DMA
// channel and direction, one per compute unit, one for copies.
//
// After an operation has been reported with Unavailable the card is gone:
// every start and CreateSlab() is Unavailable until Reset().
//
// Thread safety: as Device.
class BlockingDevice : public Device {
 public:
  // `reset_limit`: how long Reset() waits for calls in progress to return.
  BlockingDevice(
      std::unique_ptr<BlockingCard> card,
      std::chrono::milliseconds reset_limit = std::chrono::seconds(30));
  ~BlockingDevice() override;

  const DeviceInfo& info() const override { return card_->info(); }

  absl::StatusOr<SlabId> CreateSlab(BankId bank, uint64_t bytes,
                                    SlabKind kind) override;
  absl::Status DestroySlab(SlabId slab) override;
  absl::StatusOr<absl::Span<std::byte>> HostImage(SlabId slab) override;

  absl::StatusOr<OpId> StartUpload(SlabRange range, uint32_t channel) override;
  absl::StatusOr<OpId> StartDownload(SlabRange range,
                                     uint32_t channel) override;
  absl::StatusOr<OpId> StartCopy(SlabRange to, SlabRange from) override;
  absl::StatusOr<OpId> StartKernel(
      uint32_t unit, absl::Span<const KernelArgument> arguments) override;

  absl::StatusOr<size_t> Poll(absl::Time deadline,
                              absl::Span<Completion> completions) override;
  OpState State(OpId op) const override { return lanes_->State(op); }
  absl::Status Reset() override;

  absl::Time Now() const override { return lanes_->Now(); }
  void HostWorks(absl::Duration duration) override {
    lanes_->HostWorks(duration);
  }

 private:
  struct FreeImage {
    void operator()(std::byte* image) const;
  };
  struct Slab {
    BankId bank;
    uint64_t bytes = 0;
    std::unique_ptr<std::byte[], FreeImage> image;  // kHostVisible
    uint32_t pending = 0;  // operations on it that were not reported
  };

  absl::Status CheckPresent() const;
  absl::Status CheckRange(const SlabRange& range) const;
  absl::Status CheckTransfer(const SlabRange& range, uint32_t channel) const;
  absl::Status CheckArgument(uint32_t unit, size_t index,
                             const KernelArgument& argument) const;
  OpId Started(OpId op, std::vector<SlabId> slabs);

  // Declared before lanes_: calls refer to the card until their thread ends.
  std::unique_ptr<BlockingCard> card_;
  const std::chrono::milliseconds reset_limit_;
  std::unique_ptr<CallLanes> lanes_;
  std::map<SlabId, Slab> slabs_;
  std::map<OpId, std::vector<SlabId>> pending_;
  uint64_t next_slab_ = 1;
  bool gone_ = false;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_BLOCKING_DEVICE_H_
