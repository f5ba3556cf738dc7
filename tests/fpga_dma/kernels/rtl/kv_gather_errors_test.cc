// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "tests/fpga_dma/kernels/rtl/gather_bench.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kTable = 0x7000'0000'0040;

class KvGatherErrorsTest : public testing::Test {
 protected:
  KvGatherErrorsTest() {
    arguments_.pool = 0x1234'5000;
    arguments_.table = kTable;
    arguments_.num_entries = arguments_.table_entries = 2;
    arguments_.num_pages = 9;
    bench_.memory.Write(kTable, {3, 8});
  }

  RtlStatus Run() {
    bench_.Prepare(arguments_, port_, 0);
    EXPECT_TRUE(bench_.Launch()) << "hangs";
    EXPECT_EQ(bench_.stream_ends, 1u);
    EXPECT_EQ(bench_.ProtocolErrors(), std::vector<std::string>());
    return bench_.ReadStatus();
  }

  // Nothing may be read for the sake of these arguments.
  void ExpectRefused(KernelError code, uint64_t detail) {
    const uint64_t bursts =
        bench_.table_port.bursts() + bench_.kv_port.bursts();
    const RtlStatus status = Run();
    EXPECT_EQ(status.code, code);
    EXPECT_EQ(status.detail, detail);
    EXPECT_EQ(status.items_done, 0u);
    EXPECT_TRUE(bench_.ended_empty);
    EXPECT_TRUE(bench_.stream.empty());
    EXPECT_EQ(bench_.table_port.bursts() + bench_.kv_port.bursts(), bursts);
  }

  GatherBench bench_{1};
  GatherArguments arguments_;
  PortBehaviour port_;
};

TEST_F(KvGatherErrorsTest, NoEntries) {
  arguments_.num_entries = 0;
  ExpectRefused(KernelError::kZeroLength, 0);
}

TEST_F(KvGatherErrorsTest, NoBeats) {
  arguments_.slice_beats = 0;
  ExpectRefused(KernelError::kZeroLength, 0);
}

TEST_F(KvGatherErrorsTest, MoreEntriesThanTheTableHolds) {
  arguments_.num_entries = 3;
  ExpectRefused(KernelError::kTableRange, 2);
}

TEST_F(KvGatherErrorsTest, MoreEntriesThanAnyTable) {
  arguments_.num_entries = (1u << 28) + 1;
  arguments_.table_entries = 0xFFFFFFFF;
  ExpectRefused(KernelError::kTableRange, 1u << 28);
}

TEST_F(KvGatherErrorsTest, PoolBetweenPages) {
  for (const uint64_t bit : {6, 11, 48, 63}) {
    arguments_.pool = 0x1234'5000 | uint64_t{1} << bit;
    ExpectRefused(KernelError::kAlignment, arguments_.pool);
    bench_.ClearStatus();
  }
}

TEST_F(KvGatherErrorsTest, TableBetweenBeats) {
  for (const uint64_t bit : {2, 5, 48, 63}) {
    arguments_.table = kTable | uint64_t{1} << bit;
    ExpectRefused(KernelError::kAlignment, arguments_.table);
    bench_.ClearStatus();
  }
}

TEST_F(KvGatherErrorsTest, Stride) {
  for (const uint32_t stride : {0u, (1u << 24) + 1, 0xFFFFFFFFu}) {
    arguments_.page_stride_beats = stride;
    ExpectRefused(KernelError::kBadGeometry, stride);
    bench_.ClearStatus();
  }
}

TEST_F(KvGatherErrorsTest, Limits) {
  arguments_.burst_beats = 65;
  ExpectRefused(KernelError::kBadGeometry, 0);
  bench_.ClearStatus();
  arguments_.burst_beats = 0;
  arguments_.max_outstanding = 33;
  ExpectRefused(KernelError::kBadGeometry, 0);
}

TEST_F(KvGatherErrorsTest, SliceBeyondItsPage) {
  arguments_.slice_beat = 1;
  ExpectRefused(KernelError::kSliceRange, 65);
  bench_.ClearStatus();
  arguments_.slice_beat = 0xFFFFFFFF;
  ExpectRefused(KernelError::kSliceRange, 0x1'0000'003F);
}

TEST_F(KvGatherErrorsTest, TheFirstErrorStays) {
  arguments_.slice_beats = 0;
  ExpectRefused(KernelError::kZeroLength, 0);
  arguments_.slice_beats = 64;
  arguments_.slice_beat = 1;
  ExpectRefused(KernelError::kZeroLength, 0);
  arguments_.slice_beat = 0;
  ExpectRefused(KernelError::kZeroLength, 0);
  EXPECT_EQ(bench_.ReadStatus().launches, 3u);
  bench_.ClearStatus();
  const RtlStatus status = Run();
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.items_done, 2u);
  EXPECT_EQ(bench_.stream.size(), 128u);
}

TEST_F(KvGatherErrorsTest, BusErrorsOfBothPorts) {
  port_.bus_error_burst = 1;
  EXPECT_EQ(Run().code, KernelError::kBusError);
  bench_.ClearStatus();
  port_.bus_error_burst = 2;  // the table takes one burst
  EXPECT_EQ(Run().code, KernelError::kBusError);
  EXPECT_EQ(bench_.ReadStatus().items_done, 2u);
}

// A bad page behind three good ones, and a burst of the third that fails, at
// all distances of the two in time: the first of them is reported, whole.
TEST_F(KvGatherErrorsTest, TheFirstOfABusErrorAndABadPageIsReported) {
  arguments_.num_entries = arguments_.table_entries = 4;
  arguments_.slice_beats = 8;
  arguments_.burst_beats = 1;
  arguments_.max_outstanding = 2;
  bench_.memory.Write(kTable, {3, 8, 1, 9});
  int bus_errors = 0, bad_pages = 0;
  for (uint32_t latency = 1; latency <= 12; ++latency) {
    uint32_t last_bus_error = 0;
    for (uint32_t burst = 1; burst <= 24; ++burst) {
      port_.latency_cycles = latency;
      bench_.Prepare(arguments_, port_, 0);
      PortBehaviour failing = port_;
      failing.bus_error_burst = burst;
      failing.error_response = 2 + burst % 2;
      bench_.kv_port.Start(failing, {0x1234'5000, 0x1234'5000 + 9 * 4096}, 1,
                           2);
      ASSERT_TRUE(bench_.Launch()) << "hangs";
      const RtlStatus status = bench_.ReadStatus();
      EXPECT_EQ(status.bad_items, 1u);
      EXPECT_EQ(status.items_done, 3u);
      EXPECT_TRUE(bench_.ended_empty);
      if (status.code == KernelError::kBusError) {
        EXPECT_EQ(status.detail, 0u);
        EXPECT_LE(status.item, (burst - 1) / 8);
        EXPECT_EQ(last_bus_error, burst - 1) << "a later burst, but earlier";
        last_bus_error = burst;
        ++bus_errors;
      } else {
        EXPECT_EQ(status.code, KernelError::kPageIndex);
        EXPECT_EQ(status.detail, 9u);
        EXPECT_EQ(status.item, 3u);
        ++bad_pages;
      }
      bench_.ClearStatus();
    }
  }
  EXPECT_GT(bus_errors, 20);
  EXPECT_GT(bad_pages, 20);
}

TEST_F(KvGatherErrorsTest, LaunchesThroughTheControlRegister) {
  bench_.Prepare(arguments_, port_, 0);
  EXPECT_EQ(bench_.ReadRegister(kControl), kApIdle);
  bench_.WriteRegister(kInterruptEnable, 3);
  bench_.WriteRegister(kGlobalInterrupt, 1);
  EXPECT_EQ(bench_.ReadRegister(kInterruptEnable), 3u);
  EXPECT_EQ(bench_.ReadRegister(kGlobalInterrupt), 1u);
  bench_.WriteRegister(kControl, kApStart);
  // A second start waits until the first run was continued, and reads its
  // arguments then.
  bench_.WriteRegister(kControl, kApStart);
  EXPECT_EQ(bench_.ReadRegister(kControl) & (kApReady | kApIdle | kApStart),
            kApReady | kApStart);
  ASSERT_TRUE(bench_.WaitUntilDone());
  EXPECT_TRUE(bench_.interrupt());
  EXPECT_EQ(bench_.ReadRegister(kInterruptStatus), 3u);
  bench_.WriteRegister(kInterruptStatus, 3);
  EXPECT_EQ(bench_.ReadRegister(kInterruptStatus), 0u);
  EXPECT_FALSE(bench_.interrupt());
  for (int i = 0; i < 100; ++i) bench_.Cycle();
  EXPECT_EQ(bench_.ReadRegister(kControl), kApStart | kApDone | kApIdle);
  EXPECT_EQ(bench_.ReadStatus().launches, 1u);
  EXPECT_EQ(bench_.stream.size(), 128u);
  // The next: one entry.
  arguments_.num_entries = 1;
  bench_.Prepare(arguments_, port_, 0);
  bench_.WriteRegister(kControl, kApContinue);
  ASSERT_TRUE(bench_.WaitUntilDone());
  EXPECT_EQ(bench_.ReadStatus().launches, 2u);
  EXPECT_EQ(bench_.stream.size(), 64u);
  bench_.WriteRegister(kControl, kApContinue);
  EXPECT_EQ(bench_.ReadRegister(kControl), kApIdle);
}

TEST_F(KvGatherErrorsTest, ALaunchKeepsTheArgumentsItStartedWith) {
  bench_.Prepare(arguments_, port_, 0);
  bench_.WriteRegister(kControl, kApStart);
  bench_.WriteRegister(kArguments + 4 * 9, 1);  // slice_beats
  ASSERT_TRUE(bench_.WaitUntilDone());
  EXPECT_EQ(bench_.stream.size(), 128u);
}

TEST_F(KvGatherErrorsTest, ArgumentsReadBackByteByByte) {
  for (uint32_t i = 0; i < 12; ++i) {
    bench_.WriteRegister(kArguments + 4 * i, 0x11111111 * i);
  }
  bench_.WriteRegister(kArguments + 8, 0xAABBCCDD, 0b0101);
  for (uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(bench_.ReadRegister(kArguments + 4 * i),
              i == 2 ? 0x22BB22DDu : 0x11111111 * i);
  }
  EXPECT_EQ(bench_.ReadRegister(0x7C), 0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
