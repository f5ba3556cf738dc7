// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "tests/fpga_dma/kernels/rtl/mover_bench.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kWork = 0x7000'0000'0040;

class KvMoverErrorsTest : public testing::Test {
 protected:
  KvMoverErrorsTest() {
    arguments_.work = kWork;
    arguments_.source = 0x1234'5000;
    arguments_.target = 0x4321'0000'1000;
    arguments_.num_items = arguments_.max_items = 2;
    arguments_.source_pages = arguments_.target_pages = 3;
    items_.push_back({0, 1, 0, 0, 64, 1, 0, 0});
    items_.push_back({2, 2, 3, 5, 4, 5, 11, 12});
  }

  RtlStatus Run() {
    bench_.Prepare(arguments_, items_, port_);
    before_ = bench_.memory.written().size();
    EXPECT_TRUE(bench_.Launch()) << "hangs";
    EXPECT_EQ(bench_.ProtocolErrors(), std::vector<std::string>());
    return bench_.ReadStatus();
  }

  void ExpectRefused(KernelError code, uint64_t detail) {
    const RtlStatus status = Run();
    EXPECT_EQ(status.code, code);
    EXPECT_EQ(status.detail, detail);
    EXPECT_EQ(status.items_done, 0u);
    EXPECT_EQ(bench_.work_port.bursts() + bench_.source_port.bursts() +
                  bench_.target_port.bursts(),
              0u);
    bench_.ClearStatus();
  }

  // The second item is bad; the first is done.
  void ExpectBadItem(KernelError code, uint64_t detail, size_t beats = 64) {
    const RtlStatus status = Run();
    EXPECT_EQ(status.code, code);
    EXPECT_EQ(status.detail, detail);
    EXPECT_EQ(status.item, 1u);
    EXPECT_EQ(status.items_done, 1u);
    EXPECT_EQ(bench_.memory.written().size(), before_ + beats);
    // It stays, and refuses the next launch.
    EXPECT_EQ(Run().code, code);
    EXPECT_EQ(bench_.ReadStatus().launches, 2u);
    EXPECT_EQ(bench_.ReadStatus().items_done, 0u);
  }

  MoverBench bench_{1};
  MoverArguments arguments_;
  std::vector<MoveItem> items_;
  PortBehaviour port_;
  size_t before_ = 0;
};

TEST_F(KvMoverErrorsTest, NoItems) {
  arguments_.num_items = 0;
  ExpectRefused(KernelError::kZeroLength, 0);
}

TEST_F(KvMoverErrorsTest, MoreItemsThanTheListHolds) {
  arguments_.num_items = 3;
  ExpectRefused(KernelError::kTooManyItems, 3);
  arguments_.num_items = (1u << 20) + 1;
  arguments_.max_items = 0xFFFFFFFF;
  ExpectRefused(KernelError::kTooManyItems, (1u << 20) + 1);
}

TEST_F(KvMoverErrorsTest, Addresses) {
  const MoverArguments good = arguments_;
  for (const uint64_t bit : {3, 5, 48, 63}) {
    arguments_.work = kWork | uint64_t{1} << bit;
    ExpectRefused(KernelError::kAlignment, arguments_.work);
  }
  arguments_ = good;
  for (const uint64_t bit : {6, 11, 48, 63}) {
    arguments_.source = good.source | uint64_t{1} << bit;
    ExpectRefused(KernelError::kAlignment, arguments_.source);
    arguments_.source = good.source;
    arguments_.target = good.target | uint64_t{1} << bit;
    ExpectRefused(KernelError::kAlignment, arguments_.target);
    arguments_.target = good.target;
  }
}

TEST_F(KvMoverErrorsTest, Strides) {
  for (const uint32_t stride : {0u, (1u << 24) + 1, 0xFFFFFFFFu}) {
    arguments_.source_stride_beats = stride;
    ExpectRefused(KernelError::kBadGeometry, stride);
    arguments_.source_stride_beats = 64;
    arguments_.target_stride_beats = stride;
    ExpectRefused(KernelError::kBadGeometry, stride);
    arguments_.target_stride_beats = 64;
  }
}

TEST_F(KvMoverErrorsTest, Limits) {
  arguments_.burst_beats = 65;
  ExpectRefused(KernelError::kBadGeometry, 0);
  arguments_.burst_beats = 0;
  arguments_.max_outstanding = 33;
  ExpectRefused(KernelError::kBadGeometry, 0);
}

TEST_F(KvMoverErrorsTest, SourcePageAtTheLimit) {
  items_[1].source_page = 3;
  ExpectBadItem(KernelError::kPageIndex, 3);
}

TEST_F(KvMoverErrorsTest, TargetPageFarAboveTheLimit) {
  items_[1].target_page = 0xFFFFFFFF;
  ExpectBadItem(KernelError::kPageIndex, 0xFFFFFFFF);
}

TEST_F(KvMoverErrorsTest, NoBeats) {
  items_[1].num_beats = 0;
  ExpectBadItem(KernelError::kZeroLength, 0);
}

TEST_F(KvMoverErrorsTest, NoRuns) {
  items_[1].num_runs = 0;
  ExpectBadItem(KernelError::kZeroLength, 0);
}

TEST_F(KvMoverErrorsTest, RunsOnTopOfEachOther) {
  items_[1].source_run_stride_beats = 3;
  ExpectBadItem(KernelError::kSliceRange, 3);
}

TEST_F(KvMoverErrorsTest, EndlessRunsInOnePlace) {
  items_[1].target_run_stride_beats = 0;
  items_[1].num_runs = 0xFFFFFFFF;
  ExpectBadItem(KernelError::kSliceRange, 0);
}

TEST_F(KvMoverErrorsTest, ALaterRunBeyondTheSourcePage) {
  items_[1].source_run_stride_beats = 17;  // 3 + 4 * 17 + 4 > 64
  ExpectBadItem(KernelError::kSliceRange, 75, 64 + 4 * 4);
}

TEST_F(KvMoverErrorsTest, TheFirstRunBeyondTheTargetPage) {
  items_[1].target_beat = 0xFFFFFFFF;
  ExpectBadItem(KernelError::kSliceRange, 0x1'0000'0003);
}

TEST_F(KvMoverErrorsTest, BusErrorsOfAllPorts) {
  // The list is one burst, the source has more: the second is the source's.
  for (const uint64_t burst : {1, 2}) {
    port_.bus_error_burst = burst;
    const RtlStatus status = Run();
    EXPECT_EQ(status.code, KernelError::kBusError);
    EXPECT_EQ(status.items_done, 2u);
    bench_.ClearStatus();
  }
}

// The third item is bad; a burst of those before it fails, at all distances of
// the two in time: the first of them is reported, whole.
TEST_F(KvMoverErrorsTest, TheFirstOfABusErrorAndABadItemIsReported) {
  arguments_.num_items = arguments_.max_items = 3;
  arguments_.burst_beats = 1;
  arguments_.max_outstanding = 2;
  items_ = {{0, 1, 0, 0, 8, 1, 0, 0},
            {1, 2, 0, 0, 8, 1, 0, 0},
            {3, 0, 0, 0, 8, 1, 0, 0}};
  int bus_errors = 0, bad_items = 0;
  for (uint32_t latency = 1; latency <= 12; ++latency) {
    uint32_t last_bus_error = 0;
    for (uint32_t burst = 1; burst <= 16; ++burst) {
      port_.latency_cycles = latency;
      bench_.Prepare(arguments_, items_, port_);
      PortBehaviour failing = port_;
      failing.bus_error_burst = burst;
      bench_.source_port.Start(
          failing, {arguments_.source, arguments_.source + 3 * 4096}, 1, 2);
      ASSERT_TRUE(bench_.Launch()) << "hangs";
      const RtlStatus status = bench_.ReadStatus();
      EXPECT_EQ(status.bad_items, 1u);
      EXPECT_EQ(status.items_done, 2u);
      if (status.code == KernelError::kBusError) {
        EXPECT_EQ(status.detail, 0u);
        EXPECT_EQ(last_bus_error, burst - 1) << "a later burst, but earlier";
        last_bus_error = burst;
        ++bus_errors;
      } else {
        EXPECT_EQ(status.code, KernelError::kPageIndex);
        EXPECT_EQ(status.detail, 3u);
        EXPECT_EQ(status.item, 2u);
        ++bad_items;
      }
      bench_.ClearStatus();
    }
  }
  EXPECT_GT(bus_errors, 20);
  EXPECT_GT(bad_items, 20);
}

TEST_F(KvMoverErrorsTest, BusErrorOfAWrite) {
  bench_.Prepare(arguments_, items_, port_);
  port_.bus_error_burst = 1;
  bench_.target_port.Start(
      port_, {arguments_.target, arguments_.target + 3 * 64 * 64}, 64, 32);
  ASSERT_TRUE(bench_.Launch());
  EXPECT_EQ(bench_.ReadStatus().code, KernelError::kBusError);
}

TEST_F(KvMoverErrorsTest, StatusIsCleanAfterClearing) {
  items_[0].source_page = 3;
  EXPECT_EQ(Run().code, KernelError::kPageIndex);
  bench_.ClearStatus();
  items_[0].source_page = 0;
  const RtlStatus status = Run();
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.items_done, 2u);
  EXPECT_EQ(status.launches, 1u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
