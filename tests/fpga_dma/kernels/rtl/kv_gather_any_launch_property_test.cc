// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches of kv_gather with any arguments and any table, cut short by a reset:
// nothing leads to a wild access or to a kernel that does not come back.

#include <gtest/gtest.h>

#include "tests/fpga_dma/kernels/rtl/gather_bench.h"
#include "tests/fpga_dma/kernels/rtl/launch_draws.h"
#include "tests/fpga_dma/kernels/rtl/register_checks.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kArgumentWords = 12;
constexpr uint32_t kMostEntries = 1u << 28;

// How long a launch may take before it is cut short.
constexpr int kPolls = 100;

class Drawer : public LaunchDraws {
 public:
  using LaunchDraws::LaunchDraws;

  GatherArguments Draw() {
    GatherArguments a;
    a.pool = Any(36) << 12;
    a.table = Any(42) << 6;
    a.num_entries = 1 + uint32_t(Any(28));
    a.table_entries = a.num_entries + uint32_t(Any(31));
    a.num_pages = uint32_t(Any(32));
    a.page_stride_beats = 1 + uint32_t(Below(1 + Any(24)));
    a.slice_beat = uint32_t(Below(a.page_stride_beats));
    a.slice_beats = 1 + uint32_t(Below(a.page_stride_beats - a.slice_beat));
    DrawLimits(&a);
    Spoil({&a.pool, &a.table},
          {&a.num_entries, &a.page_stride_beats, &a.slice_beat, &a.slice_beats,
           &a.burst_beats, &a.max_outstanding});
    return a;
  }
};

// What kernel_abi.h and kv_gather.sv say of such arguments.
Verdict Judge(const GatherArguments& a) {
  const uint64_t slice_end = uint64_t{a.slice_beat} + a.slice_beats;
  if (a.num_entries == 0 || a.slice_beats == 0) {
    return {KernelError::kZeroLength, 0};
  }
  if (a.num_entries > a.table_entries || a.num_entries > kMostEntries) {
    return {KernelError::kTableRange, a.num_entries - 1};
  }
  if (a.pool % 4096 != 0 || a.pool >> 48 != 0) {
    return {KernelError::kAlignment, a.pool};
  }
  if (a.table % 64 != 0 || a.table >> 48 != 0) {
    return {KernelError::kAlignment, a.table};
  }
  if (a.page_stride_beats == 0 || a.page_stride_beats > kMostStrideBeats) {
    return {KernelError::kBadGeometry, a.page_stride_beats};
  }
  if (a.burst_beats > 64 || a.max_outstanding > 32) {
    return {KernelError::kBadGeometry, 0};
  }
  if (slice_end > a.page_stride_beats) {
    return {KernelError::kSliceRange, slice_end};
  }
  return {};
}

// A small launch after whatever happened.
void ExpectGoodLaunch(GatherBench* bench) {
  GatherArguments a;
  a.table = uint64_t{1} << 40;
  a.num_pages = 8;
  a.num_entries = a.table_entries = 3;
  bench->memory.Write(a.table, {7, 0, 2});
  bench->Prepare(a, PortBehaviour(), 0);
  ASSERT_TRUE(bench->Launch());
  ASSERT_EQ(bench->stream.size(), 3u * 64);
  EXPECT_EQ(bench->stream[0], bench->memory.Read(7 * 4096));
  EXPECT_EQ(bench->stream[191], bench->memory.Read(3 * 4096 - 64));
  const RtlStatus status = bench->ReadStatus();
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.launches, 1u);
}

TEST(KvGatherAnyLaunchPropertyTest, IsRefusedOrStaysInItsMemory) {
  const uint64_t seed = TestSeed(55);
  Drawer drawer(seed);
  GatherBench bench(seed);
  int refused = 0, cut = 0;
  for (int i = 0; i < 1500; ++i) {
    const GatherArguments arguments = drawer.Draw();
    const PortBehaviour port = drawer.DrawPort();
    // What the table holds was never written: page indices of all sizes.
    bench.Prepare(arguments, port, drawer.Below(2) == 0 ? 0 : 0.5);
    const uint64_t bursts = bench.table_port.bursts();
    bench.WriteRegister(kControl, kApStart);
    const bool done = bench.WaitUntilDone(kPolls);
    const Verdict verdict = Judge(arguments);
    const RtlStatus status = bench.ReadStatus();
    if (verdict.code != KernelError::kOk) {
      ASSERT_TRUE(done);
      ASSERT_EQ(status.code, verdict.code);
      ASSERT_EQ(status.detail, verdict.detail);
      ASSERT_EQ(bench.table_port.bursts(), bursts);
      ASSERT_TRUE(bench.ended_empty);
      ++refused;
    } else if (done) {
      ASSERT_EQ(bench.stream_ends, 1u);
      ASSERT_EQ(bench.ended_empty, status.bad_items > 0);
    } else {
      ++cut;
    }
    ASSERT_LE(uint64_t{status.items_done} * arguments.slice_beats,
              bench.stream.size());
    bench.Reset();
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    if (i % 10 == 0) ExpectGoodLaunch(&bench);
    if (HasFailure()) return;
    bench.Reset();
  }
  std::printf("%d refused, %d cut short\n", refused, cut);
  EXPECT_GT(refused, 300);
  EXPECT_GT(cut, 300);
}

TEST(KvGatherAnyLaunchPropertyTest, TheLastPageOfTheLargestPool) {
  GatherBench bench(1);
  GatherArguments a;
  a.pool = (uint64_t{1} << 48) - 4096;
  a.table = (uint64_t{1} << 48) - 64;
  a.num_pages = 0xFFFFFFFF;
  a.page_stride_beats = kMostStrideBeats;
  a.slice_beat = kMostStrideBeats - 3;
  a.slice_beats = 3;
  a.num_entries = a.table_entries = 2;
  bench.memory.Write(a.table, {0xFFFFFFFE, 0});
  bench.Prepare(a, PortBehaviour(), 0);
  ASSERT_TRUE(bench.Launch());
  EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
  ASSERT_EQ(bench.stream.size(), 6u);
  const uint64_t last_page =
      a.pool + uint64_t{0xFFFFFFFE} * kMostStrideBeats * 64;
  EXPECT_EQ(
      bench.stream[2],
      bench.memory.Read(last_page + (uint64_t{kMostStrideBeats} - 1) * 64));
}

TEST(KvGatherAnyLaunchPropertyTest, RegistersKeepWhatIsWritten) {
  GatherBench bench(1);
  CheckRegisters(&bench, kArgumentWords, TestSeed(56));
}

TEST(KvGatherAnyLaunchPropertyTest, Interrupts) {
  GatherBench bench(1);
  CheckInterrupts(&bench);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
