// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_ENGINE_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_ENGINE_H_

#include "absl/status/status.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/kernel_runner.h"
#include "fpga_dma/card_model/timing_model.h"
#include "fpga_dma/emulated_card/card_options.h"

namespace paged_kv::fpga_dma {

// Runs a launch to its end on that engine. `load` is what the launch was
// expected to move; clock cycles that the engine knows go there. Errors as
// KernelSpec::run and, if the RTL fails at what the kernel found good,
// Internal.
//
// Thread safety: thread-safe, under the rule of KernelSpec.
absl::Status RunOnEngine(CardEngine engine, const Board& board,
                         const KernelRunner& runner, const KernelLaunch& launch,
                         KernelLoad* load);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_ENGINE_H_
