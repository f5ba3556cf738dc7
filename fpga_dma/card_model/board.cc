// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/board.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fpga_dma/card_model/board_parser.h"
#include "fpga_dma/card_model/builtin_boards.h"

namespace paged_kv::fpga_dma {
namespace {

// More is a mistake in a file: no card has as many.
constexpr uint64_t kMaxBankBytes = uint64_t{1} << 40;

absl::Status Wrong(const Board& board, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("board ", board.name, ": ", what));
}

bool IsRate(double value) { return std::isfinite(value) && value > 0; }

absl::Status ValidateBank(const Board& board, const BoardBank& bank) {
  if (bank.name.empty() || bank.bytes == 0 || bank.bytes % 4096 != 0 ||
      bank.bytes > kMaxBankBytes || bank.base_address % 4096 != 0 ||
      bank.base_address > ~bank.bytes) {
    return Wrong(board,
                 absl::StrCat("bank \"", bank.name, "\" of ", bank.bytes,
                              " bytes at 0x", absl::Hex(bank.base_address)));
  }
  if (!IsRate(bank.bytes_per_second) || !(bank.burst.peak > 0) ||
      !(bank.burst.peak <= 1) || !std::isfinite(bank.burst.gap_bytes) ||
      bank.burst.gap_bytes < 0) {
    return Wrong(board, absl::StrCat("bank ", bank.name, ": rate ",
                                     bank.bytes_per_second, " B/s, burst peak ",
                                     bank.burst.peak, ", burst gap ",
                                     bank.burst.gap_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ValidateRates(const Board& board) {
  if (board.dma.channels == 0 || board.dma.channels > 64) {
    return Wrong(board,
                 absl::StrCat(board.dma.channels, " DMA channels, not 1..64"));
  }
  for (absl::Duration time :
       {board.dma.setup, board.copy.setup, board.launch}) {
    if (time < absl::ZeroDuration() || time > absl::Hours(1)) {
      return Wrong(board, absl::StrCat("a set-up or launch time of ",
                                       absl::FormatDuration(time)));
    }
  }
  if (!IsRate(board.dma.bytes_per_second) ||
      !IsRate(board.copy.bytes_per_second) || !IsRate(board.clock_hz) ||
      board.port_bytes == 0) {
    return Wrong(board,
                 absl::StrCat("rates: link ", board.dma.bytes_per_second,
                              " B/s, copy ", board.copy.bytes_per_second,
                              " B/s, clock ", board.clock_hz, " Hz, ports of ",
                              board.port_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ValidateComputeUnits(const Board& board) {
  uint64_t dsps = 0;
  std::vector<std::string> instances;
  for (const BoardComputeUnit& unit : board.compute_units) {
    if (unit.kernel.empty() || unit.instance.empty()) {
      return Wrong(board, "a compute unit without a kernel or a name");
    }
    for (const auto& [argument, bank] : unit.ports) {
      if (argument.empty() || bank.value() >= board.banks.size()) {
        return Wrong(board,
                     absl::StrCat(unit.instance, ": argument \"", argument,
                                  "\" is connected to bank ", bank.value(),
                                  " of ", board.banks.size()));
      }
    }
    dsps += unit.dsps;
    instances.push_back(unit.instance);
  }
  std::sort(instances.begin(), instances.end());
  const auto twice = std::adjacent_find(instances.begin(), instances.end());
  if (twice != instances.end()) {
    return Wrong(board, absl::StrCat("two compute units ", *twice));
  }
  if (!(board.dsp_budget > 0) || !(board.dsp_budget <= 1)) {
    return Wrong(board, absl::StrCat("DSP budget ", board.dsp_budget,
                                     " is no share in (0, 1]"));
  }
  if (static_cast<double>(dsps) > board.dsp_budget * board.dsps) {
    return Wrong(board, absl::StrCat("compute units take ", dsps,
                                     " DSPs, the budget is ", board.dsp_budget,
                                     " of ", board.dsps));
  }
  return absl::OkStatus();
}

}  // namespace

double BurstEfficiency::At(uint64_t burst_bytes) const {
  const double bytes = static_cast<double>(std::max<uint64_t>(burst_bytes, 1));
  return peak * bytes / (bytes + gap_bytes);
}

uint64_t Board::total_bytes() const {
  uint64_t total = 0;
  for (const BoardBank& bank : banks) total += bank.bytes;
  return total;
}

absl::StatusOr<BankId> Board::FindBank(absl::string_view bank_name) const {
  for (uint32_t i = 0; i < banks.size(); ++i) {
    if (banks[i].name == bank_name) return BankId(i);
  }
  return absl::NotFoundError(absl::StrCat(
      "board ", name, " has no bank \"", bank_name, "\"; there are ",
      absl::StrJoin(banks, ", ", [](std::string* out, const BoardBank& bank) {
        absl::StrAppend(out, bank.name);
      })));
}

absl::Status ValidateBoard(const Board& board) {
  if (board.name.empty()) return Wrong(board, "it has no name");
  if (board.banks.empty()) return Wrong(board, "it has no bank");
  for (const BoardBank& bank : board.banks) {
    if (absl::Status status = ValidateBank(board, bank); !status.ok()) {
      return status;
    }
    for (const BoardBank& other : board.banks) {
      if (&other == &bank) break;
      if (other.name == bank.name ||
          (bank.base_address < other.base_address + other.bytes &&
           other.base_address < bank.base_address + bank.bytes)) {
        return Wrong(board, absl::StrCat("banks ", other.name, " at 0x",
                                         absl::Hex(other.base_address), " and ",
                                         bank.name, " at 0x",
                                         absl::Hex(bank.base_address),
                                         " have one name or overlap"));
      }
    }
  }
  if (absl::Status status = ValidateRates(board); !status.ok()) return status;
  return ValidateComputeUnits(board);
}

absl::StatusOr<Board> ParseBoard(absl::string_view json,
                                 absl::string_view source) {
  absl::StatusOr<Board> board = internal::ParseBoardJson(json, source);
  if (!board.ok()) return board.status();
  if (absl::Status status = ValidateBoard(*board); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(source, ": ", status.message()));
  }
  return board;
}

absl::StatusOr<Board> LoadBoard(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  // A folder opens and cannot be read.
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat("cannot read board file \"", path, "\""));
  }
  return ParseBoard(text.str(), path);
}

absl::StatusOr<absl::string_view> BuiltinBoardJson(absl::string_view name) {
  for (const internal::BuiltinBoardText& text : internal::BuiltinBoardTexts()) {
    if (name == text.name) return absl::string_view(text.json);
  }
  return absl::NotFoundError(
      absl::StrCat("no board \"", name, "\"; there are ",
                   absl::StrJoin(BuiltinBoardNames(), ", ")));
}

absl::StatusOr<Board> BuiltinBoard(absl::string_view name) {
  absl::StatusOr<absl::string_view> json = BuiltinBoardJson(name);
  if (!json.ok()) return json.status();
  return ParseBoard(*json, absl::StrCat(name, ".json"));
}

std::vector<std::string> BuiltinBoardNames() {
  std::vector<std::string> names;
  for (const internal::BuiltinBoardText& text : internal::BuiltinBoardTexts()) {
    names.push_back(text.name);
  }
  return names;
}

}  // namespace paged_kv::fpga_dma
