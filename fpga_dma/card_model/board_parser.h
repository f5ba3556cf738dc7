// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The form of a board file.
//
//   {"name": "u250", "description": "...",
//    "banks": [{"name": "DDR[#]", "count": 4, "base_address": "0x4000000000",
//               "bytes": C, "bytes_per_second": C, "burst_peak": C,
//               "burst_gap_bytes": C}],
//    "dma": {"channels": C, "setup_us": C, "bytes_per_second": C},
//    "copy": {"setup_us": C, "bytes_per_second": C},
//    "launch_us": C, "clock_hz": C, "port_bytes": C,
//    "dsps": C, "dsp_budget": C,
//    "compute_units": [{"kernel": "paged_decode", "count": 4,
//                       "ports": {"kv": "DDR[#]", "work": "DDR[0]"},
//                       "lanes": C, "dsps": C}]}
//
// C is {"value": a number, "source": where it comes from}. An entry with a
// count stands for that many, with # as 0, 1, ...; banks of one entry follow
// each other in the address space, and the units of one kernel are named
// kernel_1, kernel_2, ... as Vitis names them.

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_PARSER_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fpga_dma/card_model/board.h"

namespace paged_kv::fpga_dma::internal {

// The board of a file, not validated as a whole.
absl::StatusOr<Board> ParseBoardJson(absl::string_view json,
                                     absl::string_view source);

}  // namespace paged_kv::fpga_dma::internal

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_PARSER_H_
