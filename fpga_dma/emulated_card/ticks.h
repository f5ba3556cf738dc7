// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The times of emulated_card.h as absl::Time and back, without rounding.

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_TICKS_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_TICKS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "fpga_dma/emulated_card/emulated_card.h"

namespace paged_kv::fpga_dma {

inline absl::Duration TickDuration() {
  return absl::Nanoseconds(1) / PAGEDKV_EMULATED_CARD_TICKS_PER_NS;
}

inline int64_t ToTicks(absl::Time time) {
  absl::Duration rest;
  return absl::IDivDuration(time - absl::UnixEpoch(), TickDuration(), &rest);
}

inline absl::Time FromTicks(int64_t ticks) {
  return absl::UnixEpoch() + ticks * TickDuration();
}

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_TICKS_H_
