// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_XRT_EMULATED_TIMES_H_
#define PAGED_KV_FPGA_DMA_XRT_EMULATED_TIMES_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "fpga_dma/emulated_card/emulated_card.h"
#include "fpga_dma/modelled_times.h"

namespace paged_kv::fpga_dma {

// The virtual clock of an emulated card, through the one symbol of its driver
// library.
class XrtEmulatedTimes : public ModelledTimes {
 public:
  // The clock of the card behind an open XRT device, or null: it is a real
  // card, or an emulated one that was told to take real time.
  static std::unique_ptr<XrtEmulatedTimes> Find(void* device_handle);
  // Whether `device_handle` is an emulated card, whatever its clock.
  static bool IsEmulated(void* device_handle);
  // Resets it, if it is one.
  static void ResetIfEmulated(void* device_handle);

  uint32_t channels() const { return api_->channels(card_); }

  Announced Announce(CallKind kind, uint32_t index) override;
  void Bind(uint64_t ticket) override;
  std::optional<Finish> NextFinish(absl::Time now) override;
  void Retire(uint64_t ticket) override;
  void GiveUp(absl::Time now) override;

 private:
  XrtEmulatedTimes(const PagedKvEmulatedCard* api, void* card)
      : api_(api), card_(card) {}

  const PagedKvEmulatedCard* const api_;
  void* const card_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_XRT_EMULATED_TIMES_H_
