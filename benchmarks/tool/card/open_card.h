// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_OPEN_CARD_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_OPEN_CARD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/device.h"

namespace paged_kv::tool {

struct CardChoice {
  // A card without hardware: a built-in board or a board file.
  std::string board = "u280";
  // A card: its index or PCIe address, and the design to load. Empty: `board`.
  std::string device;
  std::string xclbin;
};

struct OpenedCard {
  std::unique_ptr<fpga_dma::Device> device;
  std::string driver;                     // how it is driven, for people
  absl::optional<fpga_dma::Board> board;  // of a card without hardware
  bool through_xrt = false;
};

// Opens the card that XRT finds; or the emulated card through XRT, where both
// were built; or the simulated device, which needs neither. Sets XILINX_XRT and
// PAGEDKV_CARD_BOARD of this process for the emulated card, so it comes before
// anything else that uses XRT. Errors say what to do.
absl::StatusOr<OpenedCard> OpenCard(const CardChoice& choice);

// What XRT finds on this machine, and how to get more, as lines of text.
std::string DescribeCards();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_OPEN_CARD_H_
