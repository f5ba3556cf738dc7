// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_XCL_DRIVER_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_XCL_DRIVER_H_

#include "fpga_dma/emulated_card/card.h"

namespace paged_kv::fpga_dma {

// The card behind a handle of this driver, or null.
Card* FindCard(const void* handle);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_XCL_DRIVER_H_
