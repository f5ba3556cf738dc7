// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_OPTIONS_H_
#define PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/card_model/fault_plan.h"

namespace paged_kv::fpga_dma {

// What runs paged_decode.
enum class CardEngine {
  kModel,  // the kernel as C++
  kRtl,    // the same, reading through the Verilated kv_gather
};

// What an emulated card is told through the environment; see README.md.
struct CardOptions {
  Board board;
  FaultPlanOptions faults;
  uint64_t seed = 1;        // of the jitter
  double max_slowdown = 1;  // each operation takes up to so many times longer
  bool virtual_clock = true;
  CardEngine engine = CardEngine::kModel;
};

// How many cards there are, and how the environment describes them.
// `get` returns the value of a variable, or nothing. InvalidArgument, NotFound
// or, for an engine that was not built, Unimplemented names the variable.
using GetVariable = std::function<std::optional<std::string>(const char* name)>;
absl::StatusOr<uint32_t> ReadCardCount(const GetVariable& get);
absl::StatusOr<CardOptions> ReadCardOptions(const GetVariable& get);

// The variables of this process.
std::optional<std::string> ProcessVariable(const char* name);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_EMULATED_CARD_CARD_OPTIONS_H_
