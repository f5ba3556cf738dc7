// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/board_parser.h"

#include <limits>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace paged_kv::fpga_dma::internal {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxCount = 1024;

// Walks a file and keeps the first thing that is wrong with it, with the path
// to it; after that every read returns something harmless.
class Reader {
 public:
  explicit Reader(absl::string_view source) : source_(source) {}

  const absl::Status& status() const { return status_; }

  void Fail(absl::string_view path, absl::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat(source_, ": ", path, ": ", what));
  }

  // The member `key` of `object`, null if there is none.
  const Json& Member(const Json& object, const std::string& key,
                     absl::string_view path) {
    static const Json kNull;
    const auto member = object.find(key);
    if (!object.is_object() || member == object.end()) {
      Fail(path, absl::StrCat("no \"", key, "\""));
      return kNull;
    }
    return *member;
  }

  std::string String(const Json& object, const std::string& key,
                     absl::string_view path) {
    const Json& value = Member(object, key, path);
    if (!value.is_string()) {
      Fail(absl::StrCat(path, ".", key), "is no string");
      return "";
    }
    return value.get<std::string>();
  }

  // A number that names its source.
  double Constant(const Json& object, const std::string& key,
                  absl::string_view path) {
    const std::string where = absl::StrCat(path, ".", key);
    const Json& constant = Member(object, key, path);
    const Json& value = Member(constant, "value", where);
    if (!value.is_number()) {
      Fail(where, "\"value\" is no number");
      return 0;
    }
    if (String(constant, "source", where).empty()) {
      Fail(where, "its source is empty");
    }
    return value.get<double>();
  }

  uint64_t Whole(const Json& object, const std::string& key,
                 absl::string_view path, uint64_t max) {
    const double value = Constant(object, key, path);
    // Negated, so that no NaN passes.
    if (!(value >= 0 && value <= static_cast<double>(max)) ||
        value != static_cast<double>(static_cast<uint64_t>(value))) {
      Fail(absl::StrCat(path, ".", key),
           absl::StrCat(value, " is no whole number from 0 to ", max));
      return 0;
    }
    return static_cast<uint64_t>(value);
  }

  uint32_t Whole32(const Json& object, const std::string& key,
                   absl::string_view path) {
    return static_cast<uint32_t>(
        Whole(object, key, path, std::numeric_limits<int32_t>::max()));
  }

  absl::Duration Microseconds(const Json& object, const std::string& key,
                              absl::string_view path) {
    return absl::Microseconds(Constant(object, key, path));
  }

  // How many an entry stands for: its optional "count".
  uint64_t Count(const Json& entry, absl::string_view path) {
    if (!entry.is_object() || !entry.contains("count")) return 1;
    const Json& count = entry["count"];
    if (!count.is_number_unsigned() || count.get<uint64_t>() == 0 ||
        count.get<uint64_t>() > kMaxCount) {
      Fail(path, absl::StrCat("\"count\" is no number from 1 to ", kMaxCount));
      return 0;
    }
    return count.get<uint64_t>();
  }

  const Json& Array(const Json& object, const std::string& key,
                    absl::string_view path) {
    static const Json kEmpty = Json::array();
    const Json& value = Member(object, key, path);
    if (value.is_array()) return value;
    Fail(absl::StrCat(path, ".", key), "is no list");
    return kEmpty;
  }

 private:
  std::string source_;
  absl::Status status_;
};

std::string Numbered(const std::string& pattern, uint64_t number) {
  return absl::StrReplaceAll(pattern, {{"#", absl::StrCat(number)}});
}

void ReadBanks(const Json& root, Reader* reader, Board* board) {
  const Json& entries = reader->Array(root, "banks", "board");
  for (size_t e = 0; e < entries.size(); ++e) {
    const Json& entry = entries[e];
    const std::string path = absl::StrCat("banks[", e, "]");
    BoardBank bank;
    const std::string pattern = reader->String(entry, "name", path);
    const std::string base = reader->String(entry, "base_address", path);
    if (!absl::SimpleHexAtoi(base, &bank.base_address)) {
      reader->Fail(path, "\"base_address\" is no hexadecimal number");
    }
    bank.bytes = reader->Whole(entry, "bytes", path, uint64_t{1} << 40);
    bank.bytes_per_second = reader->Constant(entry, "bytes_per_second", path);
    bank.burst.peak = reader->Constant(entry, "burst_peak", path);
    bank.burst.gap_bytes = reader->Constant(entry, "burst_gap_bytes", path);
    const uint64_t count = reader->Count(entry, path);
    for (uint64_t i = 0; i < count; ++i) {
      bank.name = Numbered(pattern, i);
      board->banks.push_back(bank);
      bank.base_address += bank.bytes;
    }
  }
}

void ReadComputeUnits(const Json& root, Reader* reader, Board* board) {
  std::map<std::string, uint64_t> instances;
  const Json& entries = reader->Array(root, "compute_units", "board");
  for (size_t e = 0; e < entries.size(); ++e) {
    const Json& entry = entries[e];
    const std::string path = absl::StrCat("compute_units[", e, "]");
    BoardComputeUnit unit;
    unit.kernel = reader->String(entry, "kernel", path);
    unit.lanes = reader->Whole32(entry, "lanes", path);
    unit.dsps = reader->Whole32(entry, "dsps", path);
    const Json& ports = reader->Member(entry, "ports", path);
    if (!ports.is_object()) {
      reader->Fail(path, "\"ports\" is no object of argument: bank");
      continue;
    }
    const uint64_t count = reader->Count(entry, path);
    for (uint64_t i = 0; i < count; ++i) {
      unit.instance = absl::StrCat(unit.kernel, "_", ++instances[unit.kernel]);
      unit.ports.clear();
      for (const auto& [argument, bank_pattern] : ports.items()) {
        const std::string pattern = reader->String(ports, argument, path);
        const absl::StatusOr<BankId> bank =
            board->FindBank(Numbered(pattern, i));
        if (!bank.ok()) {
          reader->Fail(path, bank.status().message());
          return;
        }
        unit.ports.emplace_back(argument, *bank);
      }
      board->compute_units.push_back(unit);
    }
  }
}

}  // namespace

absl::StatusOr<Board> ParseBoardJson(absl::string_view json,
                                     absl::string_view source) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", json.empty() ? "is empty" : "is no JSON object"));
  }
  Reader reader(source);
  Board board;
  board.name = reader.String(root, "name", "board");
  board.description = reader.String(root, "description", "board");
  ReadBanks(root, &reader, &board);
  const Json& dma = reader.Member(root, "dma", "board");
  board.dma.channels = reader.Whole32(dma, "channels", "dma");
  board.dma.setup = reader.Microseconds(dma, "setup_us", "dma");
  board.dma.bytes_per_second = reader.Constant(dma, "bytes_per_second", "dma");
  const Json& copy = reader.Member(root, "copy", "board");
  board.copy.setup = reader.Microseconds(copy, "setup_us", "copy");
  board.copy.bytes_per_second =
      reader.Constant(copy, "bytes_per_second", "copy");
  board.launch = reader.Microseconds(root, "launch_us", "board");
  board.clock_hz = reader.Constant(root, "clock_hz", "board");
  board.port_bytes = reader.Whole32(root, "port_bytes", "board");
  board.dsps = reader.Whole32(root, "dsps", "board");
  board.dsp_budget = reader.Constant(root, "dsp_budget", "board");
  ReadComputeUnits(root, &reader, &board);
  if (!reader.status().ok()) return reader.status();
  return board;
}

}  // namespace paged_kv::fpga_dma::internal
