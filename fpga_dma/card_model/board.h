// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a card is made of and how fast each part is, as data: the simulated
// device and the emulated card are built from the same board files
// (fpga_dma/emulated_card/boards/*.json, where every constant names its
// source).

#ifndef PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_H_
#define PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

// Each burst costs the time of `gap_bytes` more than it moves, and the rest of
// the memory's losses (refresh, turn-around) leave `peak` of its nominal rate:
// a burst of n bytes runs at peak * n / (n + gap_bytes) of it.
struct BurstEfficiency {
  double peak = 1;
  double gap_bytes = 0;

  double At(uint64_t burst_bytes) const;
};

struct BoardBank {
  std::string name;  // "DDR[0]", "HBM[17]"
  uint64_t base_address = 0;
  uint64_t bytes = 0;
  double bytes_per_second = 0;  // nominal
  BurstEfficiency burst;
};

struct BoardDma {
  uint32_t channels = 1;  // per direction
  // What one transfer costs before its first byte moves. Those of different
  // channels overlap.
  absl::Duration setup;
  // Of the link, per direction: channels share it.
  double bytes_per_second = 0;
};

// Copies on the card (XRT's copy compute unit).
struct BoardCopy {
  absl::Duration setup;
  double bytes_per_second = 0;
};

struct BoardComputeUnit {
  std::string kernel;    // "paged_decode"
  std::string instance;  // "paged_decode_2"
  // The bank that each memory argument is connected to, by argument name.
  std::vector<std::pair<std::string, BankId>> ports;
  uint32_t lanes = 0;  // multiply-accumulates per cycle
  uint32_t dsps = 0;   // that these and the rest of the unit take
};

struct Board {
  std::string name;  // "u280"
  std::string description;
  std::vector<BoardBank> banks;
  BoardDma dma;
  BoardCopy copy;
  absl::Duration launch;     // from starting a kernel run to its first cycle
  double clock_hz = 0;       // of all compute units
  uint32_t port_bytes = 64;  // width of a compute unit's memory port
  uint32_t dsps = 0;         // of the whole FPGA
  double dsp_budget = 0;     // the share of them that compute units may take
  std::vector<BoardComputeUnit> compute_units;

  uint64_t total_bytes() const;
  // NotFound, with the names there are.
  absl::StatusOr<BankId> FindBank(absl::string_view bank_name) const;
};

// Reads a board from the text of a board file. `source` names it in errors.
// InvalidArgument says which entry is missing, of the wrong type, out of range
// or over the DSP budget.
absl::StatusOr<Board> ParseBoard(absl::string_view json,
                                 absl::string_view source);
// As ParseBoard, of a file; NotFound if it cannot be read.
absl::StatusOr<Board> LoadBoard(const std::string& path);
// One of the boards compiled in ("u250", "u280", "u55c"); NotFound lists them.
absl::StatusOr<Board> BuiltinBoard(absl::string_view name);
std::vector<std::string> BuiltinBoardNames();
// The text of a compiled-in board file, for those who print or vary it.
absl::StatusOr<absl::string_view> BuiltinBoardJson(absl::string_view name);

// Whether the parts of `board` fit together, as ParseBoard checks; for boards
// that a program has put together or varied.
absl::Status ValidateBoard(const Board& board);

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CARD_MODEL_BOARD_H_
