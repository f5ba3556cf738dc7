// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_BLOCKING_CARD_H_
#define PAGED_KV_FPGA_DMA_BLOCKING_CARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/modelled_times.h"

namespace paged_kv::fpga_dma {

// A card whose driver blocks while it works, as XRT's does; BlockingDevice
// makes a Device of it. Arguments have been checked: slabs exist, ranges lie in
// them, banks and units are in range.
//
// Thread safety: one thread at a time calls, but the calls that it hands out
// are made on any thread, those of different channels and units at once.
class BlockingCard {
 public:
  using Call = std::function<absl::Status()>;

  virtual ~BlockingCard() = default;

  virtual const DeviceInfo& info() const = 0;
  // Whether argument `argument` of `unit` can address `bank`; a port may be
  // connected to more banks than ComputeUnitInfo can say.
  virtual bool Reaches(uint32_t unit, size_t argument, BankId bank) const = 0;

  // `image` is the host side of a kHostVisible slab, page aligned, owned by the
  // caller, who keeps it until the slab is destroyed; empty for kDeviceOnly.
  virtual absl::Status CreateSlab(SlabId slab, BankId bank, uint64_t bytes,
                                  absl::Span<std::byte> image) = 0;
  virtual void DestroySlab(SlabId slab) = 0;

  // The blocking calls. They keep what they need alive, and are made once or
  // never.
  virtual Call Upload(SlabRange range) = 0;
  virtual Call Download(SlabRange range) = 0;
  virtual Call Copy(SlabRange to, SlabRange from) = 0;
  virtual Call Run(uint32_t unit,
                   absl::Span<const KernelArgument> arguments) = 0;

  // Makes calls in progress return soon, hung ones too as far as the driver
  // can.
  virtual void Interrupt() = 0;
  // Brings the card back with the slabs it had.
  // REQUIRES: no call is in progress.
  virtual absl::Status Restore() = 0;

  // The card's clock, if it is a model; owned by the card.
  virtual ModelledTimes* modelled_times() = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_BLOCKING_CARD_H_
