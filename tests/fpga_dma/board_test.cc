// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/board.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fpga_dma/card_model/kernel_runner.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "gtest/gtest.h"

namespace paged_kv::fpga_dma {
namespace {

double BankRate(const Board& board, absl::string_view prefix) {
  double rate = 0;
  for (const BoardBank& bank : board.banks) {
    if (absl::StartsWith(bank.name, prefix)) rate += bank.bytes_per_second;
  }
  return rate;
}

size_t CountBanks(const Board& board, absl::string_view prefix,
                  uint64_t bytes) {
  size_t count = 0;
  for (const BoardBank& bank : board.banks) {
    if (absl::StartsWith(bank.name, prefix) && bank.bytes == bytes) ++count;
  }
  return count;
}

TEST(BoardTest, U250IsAsItsDataSheetSays) {
  const auto board = BuiltinBoard("u250");
  ASSERT_TRUE(board.ok()) << board.status();
  EXPECT_EQ(board->banks.size(), 4u);
  EXPECT_EQ(CountBanks(*board, "DDR", uint64_t{16} << 30), 4u);
  EXPECT_EQ(board->total_bytes(), uint64_t{64} << 30);
  EXPECT_DOUBLE_EQ(BankRate(*board, "DDR"), 77e9);
  EXPECT_EQ(board->dsps, 12288u);
}

TEST(BoardTest, U280IsAsItsDataSheetSays) {
  const auto board = BuiltinBoard("u280");
  ASSERT_TRUE(board.ok()) << board.status();
  EXPECT_EQ(board->banks.size(), 34u);
  EXPECT_EQ(CountBanks(*board, "HBM", uint64_t{256} << 20), 32u);
  EXPECT_EQ(CountBanks(*board, "DDR", uint64_t{16} << 30), 2u);
  EXPECT_DOUBLE_EQ(BankRate(*board, "HBM"), 460e9);
  EXPECT_NEAR(BankRate(*board, "DDR"), 38e9, 0.6e9);
  EXPECT_EQ(board->dsps, 9024u);
}

TEST(BoardTest, U55cIsAsItsDataSheetSays) {
  const auto board = BuiltinBoard("u55c");
  ASSERT_TRUE(board.ok()) << board.status();
  EXPECT_EQ(board->banks.size(), 32u);
  EXPECT_EQ(CountBanks(*board, "HBM", uint64_t{512} << 20), 32u);
  EXPECT_DOUBLE_EQ(BankRate(*board, "HBM"), 460e9);
}

TEST(BoardTest, EveryBoardHasTheSameLinkAndFitsTheKernels) {
  EXPECT_EQ(BuiltinBoardNames(),
            (std::vector<std::string>{"u250", "u280", "u55c"}));
  for (const std::string& name : BuiltinBoardNames()) {
    SCOPED_TRACE(name);
    const auto board = BuiltinBoard(name);
    ASSERT_TRUE(board.ok()) << board.status();
    EXPECT_EQ(board->name, name);
    EXPECT_EQ(board->dma.setup, absl::Microseconds(13));
    EXPECT_DOUBLE_EQ(board->dma.bytes_per_second, 12e9);
    EXPECT_EQ(board->launch, absl::Microseconds(50));
    EXPECT_LE(board->dsp_budget, 0.6);
    const auto runner = KernelRunner::Create(*board, Kernels());
    ASSERT_TRUE(runner.ok()) << runner.status();
    // No board claims more arithmetic of a unit than the kernel has.
    for (uint32_t i = 0; i < runner->units(); ++i) {
      EXPECT_LE(2 * board->compute_units[i].lanes,
                runner->spec(i).flops_per_cycle)
          << board->compute_units[i].instance;
    }
    // Each stripe has a unit of each kernel.
    for (const KernelSpec& kernel : Kernels()) {
      size_t units = 0;
      for (const BoardComputeUnit& unit : board->compute_units) {
        if (unit.kernel == kernel.name) ++units;
      }
      EXPECT_EQ(units, name == "u250" ? 4u : 16u) << kernel.name;
    }
  }
}

// The lines "sp=unit.argument:bank" of the connectivity that Vitis links with.
std::set<std::string> VitisConnections(const std::string& board) {
  const char* root = std::getenv("PAGED_KV_SOURCE_DIR");
  std::ifstream file(absl::StrCat(root == nullptr ? "." : root,
                                  "/fpga_dma/kernels/cfg/", board, ".cfg"));
  std::set<std::string> connections;
  std::string line;
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "sp=")) connections.insert(line.substr(3));
  }
  return connections;
}

TEST(BoardTest, UnitsAreConnectedAsVitisConnectsThem) {
  for (const std::string& name : BuiltinBoardNames()) {
    SCOPED_TRACE(name);
    const Board board = BuiltinBoard(name).value();
    std::set<std::string> connections;
    for (const BoardComputeUnit& unit : board.compute_units) {
      for (const auto& [argument, bank] : unit.ports) {
        connections.insert(absl::StrCat(unit.instance, ".", argument, ":",
                                        board.banks[bank.value()].name));
      }
    }
    EXPECT_GT(connections.size(), 60u);
    EXPECT_EQ(connections, VitisConnections(name));
  }
}

TEST(BoardTest, FindsBanksAndNamesThoseThereAre) {
  const Board board = BuiltinBoard("u250").value();
  EXPECT_EQ(board.FindBank("DDR[2]").value(), BankId(2));
  const auto missing = board.FindBank("HBM[0]");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(missing.status().message(), "DDR[3]"))
      << missing.status();
}

TEST(BoardTest, AnUnknownNameListsTheBoards) {
  const auto board = BuiltinBoard("u50");
  EXPECT_EQ(board.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(board.status().message(), "u250, u280, u55c"))
      << board.status();
}

TEST(BoardTest, LoadsAFile) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/board_test_board.json");
  std::ofstream(path) << BuiltinBoardJson("u280").value();
  const auto board = LoadBoard(path);
  ASSERT_TRUE(board.ok()) << board.status();
  EXPECT_EQ(board->name, "u280");
  EXPECT_EQ(LoadBoard(path + ".missing").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadBoard(testing::TempDir()).status().code(),
            absl::StatusCode::kNotFound);
}

// A text of a board file with one thing changed, and a part of what the error
// has to say.
struct BadFile {
  std::string from;
  std::string to;
  std::string message;
};

TEST(BoardTest, BadFilesAreInvalidArgumentsThatSayWhere) {
  const std::string good(BuiltinBoardJson("u250").value());
  ASSERT_TRUE(ParseBoard(good, "good").ok());
  const BadFile bad_files[] = {
      {"\"name\": \"u250\",", "", "board: no \"name\""},
      {"\"name\": \"u250\"", "\"name\": 250", "board.name: is no string"},
      {"\"banks\": [", "\"banks\": 4, \"x\": [", "banks: is no list"},
      {"\"count\": 4", "\"count\": 0", "count"},
      {"\"count\": 4", "\"count\": -4", "count"},
      {"\"count\": 4", "\"count\": 5000", "count"},
      {"\"0x4000000000\"", "\"here\"", "base_address"},
      {"\"0x4000000000\"", "\"0xfffffffff0000000\"", "at 0xfffff"},
      {"17179869184", "\"many\"", "is no number"},
      {"17179869184", "17179869184.5", "whole number"},
      {"17179869184", "17179869185", "17179869185 bytes"},
      {"17179869184", "-1", "whole number"},
      {"17179869184", "0", "of 0 bytes"},
      {"19250000000", "0", "rate 0"},
      {"19250000000", "-5", "rate -5"},
      {"0.877", "1.5", "burst peak 1.5"},
      {"\"value\": 226", "\"value\": -226", "burst gap -226"},
      {"\"channels\": {", "\"chanels\": {", "dma: no \"channels\""},
      {"12000000000", "0", "link 0"},
      {"\"value\": 300000000", "\"value\": 0", "clock 0"},
      {"\"value\": 0.6", "\"value\": 0.1", "the budget is 0.1 of 12288"},
      {"\"value\": 0.6", "\"value\": 60", "DSP budget 60"},
      {"\"kv\": \"DDR[#]\"", "\"kv\": \"DDR[9]\"", "no bank \"DDR[9]\""},
      {"\"kv\": \"DDR[#]\"", "\"kv\": 3", "is no string"},
      {"\"kernel\": \"paged_decode\"", "\"kernel\": \"\"", "without a kernel"},
      {"\"launch_us\": {", "\"launch_us\": 50, \"y\": {", "launch_us"},
      {"AMD DS962", "", "ok"},  // shorter, and still a source
  };
  for (const BadFile& bad : bad_files) {
    SCOPED_TRACE(absl::StrCat(bad.from, " -> ", bad.to));
    ASSERT_TRUE(absl::StrContains(good, bad.from));
    std::string text = good;
    text.replace(text.find(bad.from), bad.from.size(), bad.to);
    const auto board = ParseBoard(text, "bad.json");
    if (bad.message == "ok") {
      EXPECT_TRUE(board.ok()) << board.status();
      continue;
    }
    EXPECT_EQ(board.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(board.status().message(), "bad.json: "))
        << board.status();
    EXPECT_TRUE(absl::StrContains(board.status().message(), bad.message))
        << board.status();
  }
}

TEST(BoardTest, EveryConstantNeedsASource) {
  const std::string good(BuiltinBoardJson("u250").value());
  const std::string key = "\"source\": \"";
  size_t found = 0;
  for (size_t at = good.find(key); at != std::string::npos;
       at = good.find(key, at + 1)) {
    std::string text = good;
    const size_t begin = at + key.size();
    if (text.compare(begin, 4, "DDR[") == 0) continue;  // a port's name
    text.erase(begin, text.find('"', begin) - begin);
    const auto board = ParseBoard(text, "bad.json");
    EXPECT_TRUE(absl::StrContains(board.status().message(), "source is empty"))
        << board.status();
    ++found;
  }
  EXPECT_GE(found, 20u);
}

TEST(BoardTest, EmptyTruncatedAndForeignTextsAreErrors) {
  const std::string good(BuiltinBoardJson("u280").value());
  for (size_t size = 0; size < good.size(); size += 97) {
    EXPECT_EQ(ParseBoard(good.substr(0, size), "cut").status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  for (const char* text : {"", "null", "[]", "7", "\"u280\"", "{}", "xclbin2",
                           "{\"banks\": [null]}", "{\"banks\": [[1]]}"}) {
    EXPECT_EQ(ParseBoard(text, "foreign").status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(BoardTest, ValidatesBoardsThatAProgramPutTogether) {
  const Board good = BuiltinBoard("u280").value();
  EXPECT_TRUE(ValidateBoard(good).ok());
  Board board = good;
  board.banks[1].name = board.banks[0].name;
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.banks[1].base_address += 4096;
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.compute_units[1].instance = board.compute_units[0].instance;
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.compute_units[0].ports[0].second = BankId(34);
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.dma.channels = 0;
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.launch = -absl::Seconds(1);
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
  board = good;
  board.banks.clear();
  EXPECT_EQ(ValidateBoard(board).code(), absl::StatusCode::kInvalidArgument);
}

TEST(BoardTest, BurstsAreAsFastAsPublishedForTheU200) {
  const BurstEfficiency ddr = BuiltinBoard("u250").value().banks[0].burst;
  const double port = 64 * 300e6;
  struct {
    uint64_t beats;
    double bytes_per_second;
  } const writes[] = {{4, 8.93979e9}, {16, 14.3008e9}, {32, 15.1586e9}};
  for (const auto& write : writes) {
    EXPECT_NEAR(ddr.At(write.beats * 64) * port / write.bytes_per_second, 1,
                0.05)
        << write.beats;
  }
  EXPECT_LT(ddr.At(64), ddr.At(4096));
  EXPECT_NEAR(ddr.At(uint64_t{1} << 40) * port / 16.82e9, 1, 0.01);
  EXPECT_GT(ddr.At(0), 0);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
