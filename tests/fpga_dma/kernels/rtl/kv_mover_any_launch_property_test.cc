// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches of kv_mover with any arguments and any items, cut short by a reset:
// nothing leads to a wild access or to a kernel that does not come back.

#include <gtest/gtest.h>

#include "tests/fpga_dma/kernels/rtl/launch_draws.h"
#include "tests/fpga_dma/kernels/rtl/mover_bench.h"
#include "tests/fpga_dma/kernels/rtl/register_checks.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kArgumentWords = 14;
constexpr uint32_t kMostItems = 1u << 20;

// How long a launch may take before it is cut short.
constexpr int kPolls = 100;

class Drawer : public LaunchDraws {
 public:
  using LaunchDraws::LaunchDraws;

  MoverArguments Draw() {
    MoverArguments a;
    a.work = Any(42) << 6;
    a.source = Any(36) << 12;
    a.target = Any(36) << 12;
    a.num_items = 1 + uint32_t(Any(20));
    a.max_items = a.num_items + uint32_t(Any(31));
    a.source_pages = uint32_t(Any(32));
    a.target_pages = uint32_t(Any(32));
    a.source_stride_beats = 1 + uint32_t(Below(1 + Any(24)));
    a.target_stride_beats = 1 + uint32_t(Below(1 + Any(24)));
    DrawLimits(&a);
    Spoil({&a.work, &a.source, &a.target},
          {&a.num_items, &a.source_stride_beats, &a.target_stride_beats,
           &a.burst_beats, &a.max_outstanding});
    return a;
  }

  // Often good, each word now and then anything.
  Beat DrawItem(const MoverArguments& a) {
    const uint64_t room =
        std::min(a.source_stride_beats, a.target_stride_beats);
    Beat item;
    for (uint32_t& word : item) word = uint32_t(random_());
    item[0] = uint32_t(Below(uint64_t{a.source_pages} + 1));
    item[1] = uint32_t(Below(uint64_t{a.target_pages} + 1));
    item[4] = 1 + uint32_t(Below(1 + Below(room + 1)));
    item[2] = uint32_t(Below(uint64_t{a.source_stride_beats} + 1));
    item[3] = uint32_t(Below(uint64_t{a.target_stride_beats} + 1));
    if (Below(2) == 0) item[2] = item[3] = 0;
    if (Below(2) == 0) item[5] = 1 + uint32_t(Below(3));
    if (Below(4) == 0) item[2 + Below(6)] = uint32_t(Any(32));
    return item;
  }
};

// What kernel_abi.h and kv_mover.sv say of such arguments.
Verdict Judge(const MoverArguments& a) {
  if (a.num_items == 0) return {KernelError::kZeroLength, 0};
  if (a.num_items > a.max_items || a.num_items > kMostItems) {
    return {KernelError::kTooManyItems, a.num_items};
  }
  if (a.work % 64 != 0 || a.work >> 48 != 0) {
    return {KernelError::kAlignment, a.work};
  }
  for (const uint64_t address : {a.source, a.target}) {
    if (address % 4096 != 0 || address >> 48 != 0) {
      return {KernelError::kAlignment, address};
    }
  }
  for (const uint32_t stride : {a.source_stride_beats, a.target_stride_beats}) {
    if (stride == 0 || stride > kMostStrideBeats) {
      return {KernelError::kBadGeometry, stride};
    }
  }
  if (a.burst_beats > 64 || a.max_outstanding > 32) {
    return {KernelError::kBadGeometry, 0};
  }
  return {};
}

// A small launch after whatever happened.
void ExpectGoodLaunch(MoverBench* bench) {
  MoverArguments a;
  a.work = uint64_t{1} << 40;
  a.target = uint64_t{1} << 30;
  a.source_pages = a.target_pages = 4;
  bench->memory = BeatMemory();
  bench->Prepare(a, {MoveItem{3, 1, 2, 5, 7, 1, 0, 0}}, PortBehaviour());
  ASSERT_TRUE(bench->Launch());
  const RtlStatus status = bench->ReadStatus();
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.launches, 1u);
  ASSERT_EQ(bench->memory.written().size(), 1u + 7);
  for (uint64_t beat = 0; beat < 7; ++beat) {
    EXPECT_EQ(bench->memory.Read(a.target + 4096 + (5 + beat) * 64),
              bench->memory.Read(3 * 4096 + (2 + beat) * 64));
  }
}

TEST(KvMoverAnyLaunchPropertyTest, IsRefusedOrStaysInItsMemory) {
  const uint64_t seed = TestSeed(57);
  Drawer drawer(seed);
  MoverBench bench(seed);
  int refused = 0, cut = 0, bad_items = 0;
  for (int i = 0; i < 1500; ++i) {
    const MoverArguments arguments = drawer.Draw();
    const Verdict verdict = Judge(arguments);
    const PortBehaviour port = drawer.DrawPort();
    bench.memory = BeatMemory();
    bench.Prepare(arguments, {}, port);
    if (verdict.code == KernelError::kOk) {
      for (uint64_t item = 0; item < std::min(20u, arguments.num_items);
           ++item) {
        bench.memory.Write(arguments.work + item * 64,
                           drawer.DrawItem(arguments));
      }
    }
    const size_t before = bench.memory.written().size();
    bench.WriteRegister(kControl, kApStart);
    const bool done = bench.WaitUntilDone(kPolls);
    const RtlStatus status = bench.ReadStatus();
    if (verdict.code != KernelError::kOk) {
      ASSERT_TRUE(done);
      ASSERT_EQ(status.code, verdict.code);
      ASSERT_EQ(status.detail, verdict.detail);
      ASSERT_EQ(bench.work_port.longest_burst(), 0u);
      ASSERT_EQ(bench.memory.written().size(), before);
      ++refused;
    } else if (!done) {
      ++cut;
    }
    bad_items += status.bad_items > 0 ? 1 : 0;
    ASSERT_LE(status.bad_items, 1u);
    bench.Reset();
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    if (i % 10 == 0) ExpectGoodLaunch(&bench);
    if (HasFailure()) return;
    bench.Reset();
  }
  std::printf("%d refused, %d with a bad item, %d cut short\n", refused,
              bad_items, cut);
  EXPECT_GT(refused, 300);
  EXPECT_GT(bad_items, 300);
  EXPECT_GT(cut, 100);
}

TEST(KvMoverAnyLaunchPropertyTest, TheLastPagesOfTheLargestPools) {
  MoverBench bench(1);
  MoverArguments a;
  a.source = a.target = (uint64_t{1} << 48) - 4096;
  a.work = (uint64_t{1} << 48) - 64;
  a.source_pages = a.target_pages = 0xFFFFFFFF;
  a.source_stride_beats = a.target_stride_beats = kMostStrideBeats;
  const MoveItem item = {0xFFFFFFFE, 0xFFFFFFFD, kMostStrideBeats - 5, 0, 2,
                         2,          3,          kMostStrideBeats - 2};
  bench.Prepare(a, {item}, PortBehaviour());
  ASSERT_TRUE(bench.Launch());
  EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
  EXPECT_EQ(bench.ReadStatus().code, KernelError::kOk);
  const uint64_t page_bytes = uint64_t{kMostStrideBeats} * 64;
  const uint64_t source_end = a.source + uint64_t{0xFFFFFFFF} * page_bytes;
  EXPECT_EQ(bench.memory.Read(source_end - page_bytes - 64),
            bench.memory.Read(source_end - 64));
}

TEST(KvMoverAnyLaunchPropertyTest, RegistersKeepWhatIsWritten) {
  MoverBench bench(1);
  CheckRegisters(&bench, kArgumentWords, TestSeed(58));
}

TEST(KvMoverAnyLaunchPropertyTest, Interrupts) {
  MoverBench bench(1);
  CheckInterrupts(&bench);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
