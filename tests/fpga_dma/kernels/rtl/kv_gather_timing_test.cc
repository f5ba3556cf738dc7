// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How well kv_gather keeps a port busy, in clock cycles.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "fpga_dma/card_model/board.h"
#include "tests/fpga_dma/kernels/rtl/gather_bench.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr double kClockHz = 300e6;
constexpr double kPortBytesPerSecond = 64 * kClockHz;

// Share of the cycles of a launch in which a beat arrived.
double PortUse(const PortBehaviour& port, uint32_t slice_beats,
               uint32_t burst_beats, uint32_t max_outstanding) {
  constexpr uint32_t kBeats = 1 << 15;
  GatherBench bench(1);
  GatherArguments a;
  a.table = uint64_t{1} << 40;
  a.num_entries = a.table_entries = kBeats / slice_beats;
  a.num_pages = a.num_entries;
  a.page_stride_beats = a.slice_beats = slice_beats;
  a.burst_beats = burst_beats;
  a.max_outstanding = max_outstanding;
  for (uint32_t i = 0; i < a.num_entries; i += 16) {
    Beat beat;
    // 7 is odd, so every page is read once.
    for (uint32_t j = 0; j < 16; ++j) beat[j] = (i + j) * 7 % a.num_pages;
    bench.memory.Write(a.table + i * 4, beat);
  }
  bench.Prepare(a, port, 0);
  EXPECT_TRUE(bench.Launch());
  EXPECT_EQ(bench.stream.size(), kBeats);
  EXPECT_LE(bench.kv_port.most_outstanding(), max_outstanding);
  EXPECT_EQ(bench.kv_port.longest_burst(), std::min(burst_beats, slice_beats));
  EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
  return kBeats / static_cast<double>(bench.ReadStatus().cycles);
}

TEST(KvGatherTimingTest, SlicesOf4KiBKeepThePortBusy) {
  PortBehaviour port;
  port.latency_cycles = 74;
  double worst = 1;
  for (const double gap : {0.0, 4.0, 8.0}) {
    port.gap_cycles = gap;
    const double modelled = 64 / (64 + gap);
    const double use = PortUse(port, 64, 64, 32);
    std::printf("gap %.0f cycles: %.3f of the cycles, %.3f of the model\n", gap,
                use, use / modelled);
    EXPECT_GE(use / modelled, 0.88);
    EXPECT_LE(use / modelled, 1.001);
    worst = std::min(worst, use / modelled);
  }
  RecordProperty("share_of_model", testing::PrintToString(worst));
}

// Read bandwidths that Xilinx measured on a U200 at 300 MHz
// (Vitis_Accel_Examples, cpp_kernels/axi_burst_performance). Calibrated: the
// latency, from the first line, and the peak, from the last.
TEST(KvGatherTimingTest, PublishedBandwidthsOfTheU200) {
  struct Line {
    uint32_t burst_beats, outstanding;
    double bytes_per_second;
  };
  PortBehaviour port;
  port.latency_cycles = 72;
  port.peak = 16.82e9 / kPortBytesPerSecond;
  double worst = 0;
  for (const Line& line : {Line{4, 4, 3.93e9}, Line{16, 4, 13.11e9},
                           Line{32, 4, 16.82e9}, Line{4, 32, 16.82e9}}) {
    const double rate = PortUse(port, 64, line.burst_beats, line.outstanding) *
                        kPortBytesPerSecond;
    std::printf("%2u beats, %2u outstanding: %5.2f GB/s, published %5.2f\n",
                line.burst_beats, line.outstanding, rate / 1e9,
                line.bytes_per_second / 1e9);
    EXPECT_NEAR(rate / line.bytes_per_second, 1, 0.05);
    worst = std::max(worst, std::abs(rate / line.bytes_per_second - 1));
  }
  RecordProperty("deviation", testing::PrintToString(worst));
}

// The emulated card says how much of a bank bursts of a length use. With that
// gap between bursts in the memory, the kernel has to reach as much.
TEST(KvGatherTimingTest, AgreesWithTheEmulatedCardsBurstEfficiency) {
  double worst = 0;
  for (const char* name : {"u250", "u280", "u55c"}) {
    const absl::StatusOr<Board> board = BuiltinBoard(name);
    ASSERT_TRUE(board.ok()) << board.status();
    const BurstEfficiency& burst = board->banks[0].burst;
    PortBehaviour port;
    port.latency_cycles = 72;
    port.peak = burst.peak;
    port.gap_cycles = burst.gap_bytes / kBeatBytes / burst.peak;
    for (const uint32_t beats : {4u, 8u, 16u, 32u, 64u}) {
      const double use = PortUse(port, beats, 64, 32);
      const double expected = burst.At(beats * kBeatBytes);
      std::printf("%s, bursts of %2u beats: %.3f of the cycles, card %.3f\n",
                  name, beats, use, expected);
      EXPECT_NEAR(use / expected, 1, 0.1);
      worst = std::max(worst, std::abs(use / expected - 1));
    }
  }
  RecordProperty("deviation", testing::PrintToString(worst));
}

}  // namespace
}  // namespace paged_kv::fpga_dma
