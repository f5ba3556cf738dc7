// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random launches of kv_mover. PAGED_KV_RTL_BURSTS: how many write bursts to
// see at least.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/fpga_dma/kernels/rtl/mover_bench.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

uint64_t WantedBursts() {
  const char* text = std::getenv("PAGED_KV_RTL_BURSTS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 2000;
}

struct Launch {
  MoverArguments arguments;
  std::vector<MoveItem> items;
  PortBehaviour port;
};

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }
  double Share() { return Below(3) == 0 ? 0 : 0.01 * double(Below(80)); }

  Launch Draw() {
    Launch launch;
    MoverArguments& a = launch.arguments;
    const bool in_pool = Below(2) == 0;  // copy-on-write
    a.source_stride_beats = DrawStride();
    a.source_pages = DrawPages();
    a.target_stride_beats = in_pool ? a.source_stride_beats : DrawStride();
    a.target_pages = in_pool ? a.source_pages : DrawPages();
    // Four quarters of the addresses: no pool reaches into another.
    a.source = Below(uint64_t{1} << 34) << 12;
    a.target = in_pool ? a.source
                       : (uint64_t{1} << 47) + (Below(uint64_t{1} << 34) << 12);
    a.work = (uint64_t{3} << 46) + Below(uint64_t{1} << 40) * 64;
    a.num_items = 1 + uint32_t(Below(12));
    a.max_items = a.num_items + uint32_t(Below(5));
    if (Below(3) == 0) a.burst_beats = 1 + uint32_t(Below(64));
    if (Below(3) == 0) a.max_outstanding = 1 + uint32_t(Below(32));
    for (uint32_t i = 0; i < a.num_items; ++i) {
      launch.items.push_back(DrawItem(a));
      MoveItem& item = launch.items.back();
      // Pages are written once, and lie apart from those that are read.
      item.target_page = i;
      if (in_pool) item.source_page = (a.source_pages - 1) - i % 20;
    }
    launch.port.latency_cycles = 1 + uint32_t(Below(100));
    launch.port.jitter_cycles = uint32_t(Below(60));
    launch.port.refuse = Share();
    launch.port.pause = Share();
    return launch;
  }

 private:
  uint32_t DrawStride() {
    switch (Below(3)) {
      case 0:
        return (1u << 24) - uint32_t(Below(1000));
      case 1:
        return 64 * (1 + uint32_t(Below(8)));
      default:
        return 1 + uint32_t(Below(400));
    }
  }
  uint32_t DrawPages() { return 40 + uint32_t(Below(100)); }

  MoveItem DrawItem(const MoverArguments& a) {
    MoveItem item;
    item.source_page = uint32_t(Below(a.source_pages));
    const uint32_t room =
        std::min(a.source_stride_beats, a.target_stride_beats);
    item.num_beats =
        1 + uint32_t(Below(std::min(room, Below(4) == 0 ? 200u : 30u)));
    item.num_runs = 1 + uint32_t(Below(std::min(room / item.num_beats, 6u)));
    item.source_run_stride_beats =
        DrawRunStride(a.source_stride_beats, item, &item.source_beat);
    item.target_run_stride_beats =
        DrawRunStride(a.target_stride_beats, item, &item.target_beat);
    return item;
  }
  // A stride that fits, and where the first run starts, often the last place.
  uint32_t DrawRunStride(uint32_t page_beats, const MoveItem& item,
                         uint32_t* first) {
    uint32_t stride = uint32_t(Below(100));
    if (item.num_runs > 1) {
      const uint32_t most = (page_beats - item.num_beats) / (item.num_runs - 1);
      stride = item.num_beats + uint32_t(Below(most - item.num_beats + 1));
    }
    const uint32_t used = (item.num_runs - 1) * stride + item.num_beats;
    const uint32_t last = page_beats - used;
    *first = Below(2) == 0 ? last : uint32_t(Below(uint64_t{last} + 1));
    return stride;
  }

  std::mt19937_64 random_;
};

// What the items before `count` do to memory.
void Model(const Launch& launch, size_t count, BeatMemory* memory) {
  const MoverArguments& a = launch.arguments;
  for (size_t i = 0; i < count; ++i) {
    const MoveItem& item = launch.items[i];
    for (uint32_t run = 0; run < item.num_runs; ++run) {
      for (uint32_t beat = 0; beat < item.num_beats; ++beat) {
        const uint64_t from =
            uint64_t{item.source_page} * a.source_stride_beats +
            item.source_beat + uint64_t{run} * item.source_run_stride_beats +
            beat;
        const uint64_t to = uint64_t{item.target_page} * a.target_stride_beats +
                            item.target_beat +
                            uint64_t{run} * item.target_run_stride_beats + beat;
        memory->Write(a.target + to * 64, memory->Read(a.source + from * 64));
      }
    }
  }
}

TEST(KvMoverPropertyTest, MovesWhatTheItemsSayAndNothingElse) {
  const uint64_t seed = TestSeed(53);
  const uint64_t wanted = WantedBursts();
  Drawer drawer(seed);
  MoverBench bench(seed);
  while (bench.target_port.bursts() < wanted) {
    const Launch launch = drawer.Draw();
    bench.memory = BeatMemory();
    bench.Prepare(launch.arguments, launch.items, launch.port);
    BeatMemory expected = bench.memory;
    Model(launch, launch.items.size(), &expected);
    ASSERT_TRUE(bench.Launch()) << "hangs";
    ASSERT_EQ(bench.memory.written(), expected.written());
    const RtlStatus status = bench.ReadStatus();
    ASSERT_EQ(status.code, KernelError::kOk);
    ASSERT_EQ(status.items_done, launch.items.size());
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    EXPECT_TRUE(bench.PortsIdle());
    if (HasFailure()) return;
  }
  RecordProperty("bursts", testing::PrintToString(bench.target_port.bursts()));
  RecordProperty("cycles", testing::PrintToString(bench.cycles()));
}

TEST(KvMoverPropertyTest, ABadItemEndsTheList) {
  const uint64_t seed = TestSeed(54);
  Drawer drawer(seed);
  MoverBench bench(seed);
  for (int i = 0; i < 150; ++i) {
    Launch launch = drawer.Draw();
    const size_t bad = drawer.Below(launch.items.size());
    MoveItem& item = launch.items[bad];
    item.num_runs = 1;
    KernelError code = KernelError::kPageIndex;
    switch (drawer.Below(4)) {
      case 0:
        item.source_page = launch.arguments.source_pages;
        break;
      case 1:
        item.target_page = 0xFFFFFFFF - uint32_t(drawer.Below(1000));
        break;
      case 2:
        code = KernelError::kSliceRange;
        item.target_beat =
            launch.arguments.target_stride_beats - item.num_beats + 1;
        break;
      default:
        code = KernelError::kZeroLength;
        item.num_beats = 0;
        break;
    }
    bench.memory = BeatMemory();
    bench.Prepare(launch.arguments, launch.items, launch.port);
    BeatMemory expected = bench.memory;
    Model(launch, bad, &expected);
    ASSERT_TRUE(bench.Launch()) << "hangs";
    ASSERT_EQ(bench.memory.written(), expected.written());
    const RtlStatus status = bench.ReadStatus();
    ASSERT_EQ(status.code, code);
    ASSERT_EQ(status.item, bad);
    ASSERT_EQ(status.items_done, bad);
    ASSERT_EQ(status.bad_items, 1u);
    bench.ClearStatus();
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    EXPECT_TRUE(bench.PortsIdle());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma
