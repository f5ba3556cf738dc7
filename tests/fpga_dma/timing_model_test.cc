// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/card_model/timing_model.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr BankId kBank0{0};
constexpr BankId kBank1{1};
const absl::Time kStart = absl::UnixEpoch();

double Microseconds(absl::Duration duration) {
  return absl::ToDoubleMicroseconds(duration);
}

// Numbers that make times easy to say: 10 us + 1 us per 1,000 bytes on the
// link, banks of 2,000 bytes/us with bursts of 1,000 bytes at half of it.
Board EasyBoard() {
  Board board;
  board.name = "easy";
  for (uint64_t i : {0, 1}) {
    BoardBank bank;
    bank.name = i == 0 ? "A" : "B";
    bank.base_address = i << 30;
    bank.bytes = uint64_t{1} << 30;
    bank.bytes_per_second = 4e9;
    bank.burst = {0.5, 0};
    board.banks.push_back(bank);
  }
  board.dma = {2, absl::Microseconds(10), 1e9};
  board.copy = {absl::Microseconds(20), 1e9};
  board.launch = absl::Microseconds(50);
  board.clock_hz = 100e6;
  board.port_bytes = 64;
  board.dsps = 100;
  board.dsp_budget = 1;
  for (const char* name : {"k_1", "k_2"}) {
    BoardComputeUnit unit;
    unit.kernel = "k";
    unit.instance = name;
    unit.lanes = 5;  // 1,000 flops/us
    board.compute_units.push_back(unit);
  }
  EXPECT_TRUE(ValidateBoard(board).ok());
  return board;
}

KernelLoad Load(uint64_t read, uint64_t written, uint64_t flops,
                BankId bank = kBank0) {
  return {{{bank, read, written, 4096}}, flops};
}

TEST(TimingModelTest, ATransferIsItsSetupAndItsBytes) {
  TimingModel timing(EasyBoard());
  const TimeSpan span = timing.Transfer(DmaDirection::kUpload, 0, kBank0, 5000,
                                        kStart + absl::Microseconds(3));
  EXPECT_DOUBLE_EQ(Microseconds(span.start - kStart), 3);
  EXPECT_DOUBLE_EQ(Microseconds(span.end - span.start), 10 + 5);
}

TEST(TimingModelTest, TheBoardsTransferAsTheFormulaSays) {
  for (const std::string& name : BuiltinBoardNames()) {
    TimingModel timing(BuiltinBoard(name).value());
    for (double bytes : {64.0, 4096.0, 1e6, 64e6}) {
      const TimeSpan span =
          timing.Transfer(DmaDirection::kDownload, 1, kBank0,
                          static_cast<uint64_t>(bytes), kStart);
      EXPECT_NEAR(Microseconds(span.end - span.start), 13 + bytes / 12e3, 1e-2)
          << name << " " << bytes;
      timing.Reset(kStart);
    }
  }
}

TEST(TimingModelTest, OneChannelAndDirectionIsOneAfterTheOther) {
  TimingModel timing(EasyBoard());
  const auto up = DmaDirection::kUpload;
  const TimeSpan first = timing.Transfer(up, 0, kBank0, 5000, kStart);
  // The other direction is free.
  const TimeSpan down =
      timing.Transfer(DmaDirection::kDownload, 0, kBank1, 1000, kStart);
  EXPECT_EQ(down.start, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(down.end - down.start), 11);
  const TimeSpan second = timing.Transfer(up, 0, kBank1, 1000, kStart);
  EXPECT_EQ(second.start, first.end);
  EXPECT_DOUBLE_EQ(Microseconds(second.end - second.start), 11);
}

TEST(TimingModelTest, ChannelsOverlapTheirSetupAndShareTheLink) {
  TimingModel timing(EasyBoard());
  const auto up = DmaDirection::kUpload;
  const TimeSpan a = timing.Transfer(up, 0, kBank0, 5000, kStart);
  const TimeSpan b = timing.Transfer(up, 1, kBank1, 7000, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(a.end - kStart), 15);
  EXPECT_EQ(b.start, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(b.end - kStart), 22);
  EXPECT_DOUBLE_EQ(Microseconds(timing.link_busy(up)), 12);
  EXPECT_EQ(timing.link_busy(DmaDirection::kDownload), absl::ZeroDuration());
}

TEST(TimingModelTest, ASlowBankSlowsATransfer) {
  Board board = EasyBoard();
  board.banks[0].bytes_per_second = 1e9;  // 500 bytes/us in bursts
  TimingModel timing(board);
  const TimeSpan span =
      timing.Transfer(DmaDirection::kUpload, 0, kBank0, 5000, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(span.end - span.start), 10 + 10);
}

TEST(TimingModelTest, ACopyReadsAndWrites) {
  TimingModel timing(EasyBoard());
  const TimeSpan apart = timing.Copy(kBank1, kBank0, 4000, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(apart.end - apart.start), 20 + 4);
  // In one bank both use its 2,000 bytes/us, which is the engine's rate.
  const TimeSpan within = timing.Copy(kBank0, kBank0, 4000, apart.end);
  EXPECT_DOUBLE_EQ(Microseconds(within.end - within.start), 20 + 4);
  Board board = EasyBoard();
  board.banks[0].bytes_per_second = 2e9;
  TimingModel slow(board);
  const TimeSpan bound = slow.Copy(kBank0, kBank0, 4000, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(bound.end - bound.start), 20 + 8);
  EXPECT_EQ(slow.bank_bytes()[0], 8000u);
}

TEST(TimingModelTest, AKernelIsAsLateAsItsSlowestPart) {
  const auto time = [](const KernelLoad& load) {
    TimingModel timing(EasyBoard());
    const TimeSpan span = timing.Kernel(0, load, kStart);
    return Microseconds(span.end - span.start);
  };
  EXPECT_DOUBLE_EQ(time({}), 50);
  EXPECT_DOUBLE_EQ(time(Load(0, 0, 3000)), 50 + 3);
  EXPECT_DOUBLE_EQ(time(Load(8000, 0, 0)), 50 + 4);
  EXPECT_DOUBLE_EQ(time(Load(8000, 0, 3000)), 50 + 4);
  EXPECT_DOUBLE_EQ(time(Load(8000, 0, 9000)), 50 + 9);
  EXPECT_DOUBLE_EQ(time(Load(8000, 4000, 0)), 50 + 6);
  // Two banks at once, and two ports to one bank.
  EXPECT_DOUBLE_EQ(
      time({{{kBank0, 8000, 0, 4096}, {kBank1, 6000, 0, 4096}}, 0}), 50 + 4);
  EXPECT_DOUBLE_EQ(
      time({{{kBank0, 8000, 0, 4096}, {kBank0, 6000, 0, 4096}}, 0}), 50 + 7);
}

TEST(TimingModelTest, APortIsNoFasterThanItsWidth) {
  Board board = EasyBoard();
  board.port_bytes = 10;  // 1,000 bytes/us, 500 in bursts
  TimingModel timing(board);
  const TimeSpan read = timing.Kernel(0, Load(5000, 0, 0), kStart);
  EXPECT_DOUBLE_EQ(Microseconds(read.end - read.start), 50 + 10);
  // Reading and writing at the same time.
  const TimeSpan both = timing.Kernel(0, Load(5000, 5000, 0), read.end);
  EXPECT_DOUBLE_EQ(Microseconds(both.end - both.start), 50 + 10);
}

TEST(TimingModelTest, ShortBurstsCostMore) {
  Board board = EasyBoard();
  board.banks[0].burst = {1, 64};
  board.banks[0].bytes_per_second = 1e9;
  TimingModel timing(board);
  absl::Time now = kStart;
  const auto time = [&](uint64_t burst) {
    const TimeSpan span =
        timing.Kernel(0, {{{kBank0, 64000, 0, burst}}, 0}, now);
    now = span.end;
    return Microseconds(span.end - span.start) - 50;
  };
  EXPECT_NEAR(time(64), 128, 1e-3);
  EXPECT_NEAR(time(128), 96, 1e-3);
  EXPECT_NEAR(time(4096), 65, 1e-3);
}

TEST(TimingModelTest, RunsOfAUnitFollowEachOtherAndUnitsShareABank) {
  TimingModel timing(EasyBoard());
  const TimeSpan a = timing.Kernel(0, Load(20000, 0, 0), kStart);
  const TimeSpan b = timing.Kernel(0, Load(2000, 0, 0), kStart);
  EXPECT_EQ(b.start, a.end);
  timing.Reset(kStart);
  const TimeSpan c = timing.Kernel(0, Load(20000, 0, 0), kStart);
  const TimeSpan d = timing.Kernel(1, Load(20000, 0, 0), kStart);
  const TimeSpan e = timing.Kernel(0, Load(20000, 0, 0, kBank1), c.end);
  EXPECT_DOUBLE_EQ(Microseconds(c.end - kStart), 60);
  EXPECT_EQ(d.start, kStart);
  EXPECT_DOUBLE_EQ(Microseconds(d.end - kStart), 70);
  EXPECT_DOUBLE_EQ(Microseconds(e.end - e.start), 60);
}

// Every other turn is the transfer's, and what it takes is missing afterwards:
// nothing moves faster in all than the bank does.
TEST(TimingModelTest, ATransferTakesTurnsWithAKernelAtItsBank) {
  TimingModel timing(EasyBoard());
  const auto up = DmaDirection::kUpload;
  const auto at = [](double us) { return kStart + absl::Microseconds(us); };
  // The kernel reads from 50 us to 150 us.
  EXPECT_EQ(timing.Kernel(0, Load(200000, 0, 0), kStart).end, at(150));
  // 40,000 bytes are 20 us of the bank's time, 40 us by every other turn, and
  // as much on the link.
  EXPECT_EQ(timing.Transfer(up, 0, kBank0, 40000, at(50)).end, at(100));
  // What the transfer took comes on top for the next kernel.
  EXPECT_EQ(timing.Kernel(1, Load(2000, 0, 0), at(100)).end, at(171));
  EXPECT_EQ(timing.bank_busy()[0], absl::Microseconds(121));
}

TEST(TimingModelTest, SlownessHoldsUpWhatFollows) {
  TimingModel timing(EasyBoard());
  const auto up = DmaDirection::kUpload;
  const TimeSpan slow = timing.Transfer(up, 0, kBank0, 5000, kStart, 3);
  EXPECT_DOUBLE_EQ(Microseconds(slow.end - slow.start), 45);
  EXPECT_EQ(timing.Transfer(up, 0, kBank0, 5000, kStart).start, slow.end);
  const TimeSpan copy = timing.Copy(kBank0, kBank1, 1000, slow.end, 2);
  EXPECT_DOUBLE_EQ(Microseconds(copy.end - copy.start), 42);
  const TimeSpan run = timing.Kernel(1, Load(0, 0, 1000), copy.end, 2);
  EXPECT_DOUBLE_EQ(Microseconds(run.end - run.start), 102);
}

TEST(TimingModelTest, AResetFreesAllAndForgetsNoTotals) {
  TimingModel timing(EasyBoard());
  const auto up = DmaDirection::kUpload;
  timing.Transfer(up, 0, kBank0, 1000000, kStart);
  timing.Kernel(0, Load(1000000, 0, 0), kStart);
  const absl::Time now = kStart + absl::Microseconds(5);
  timing.Reset(now);
  EXPECT_EQ(timing.Transfer(up, 0, kBank0, 1000, kStart).start, now);
  EXPECT_EQ(timing.Kernel(0, {}, kStart).start, now);
  EXPECT_EQ(timing.bank_bytes()[0], 2001000u);
  EXPECT_GT(timing.unit_busy()[0], absl::Microseconds(500));
  EXPECT_GT(timing.bank_busy()[0], absl::Microseconds(900));
}

}  // namespace
}  // namespace paged_kv::fpga_dma
