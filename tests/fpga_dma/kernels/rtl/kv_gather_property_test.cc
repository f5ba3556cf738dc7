// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random launches of kv_gather. PAGED_KV_RTL_BURSTS: how many read bursts of
// pages to see at least.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/fpga_dma/kernels/rtl/gather_bench.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

uint64_t WantedBursts() {
  const char* text = std::getenv("PAGED_KV_RTL_BURSTS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 4000;
}

struct Launch {
  GatherArguments arguments;
  std::vector<uint32_t> pages;  // [num_entries]
  PortBehaviour port;
  double pause = 0;
};

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }
  double Share() { return Below(3) == 0 ? 0 : 0.01 * double(Below(80)); }

  Launch Draw() {
    Launch launch;
    GatherArguments& a = launch.arguments;
    // Slices and strides of all sizes, small ones often.
    a.slice_beats = 1 + uint32_t(Below(Below(4) == 0 ? 300 : 40));
    a.slice_beat = uint32_t(Below(Below(2) == 0 ? 1 : 500));
    a.page_stride_beats = a.slice_beat + a.slice_beats;
    switch (Below(3)) {
      case 0:
        a.page_stride_beats += uint32_t(Below(100));
        break;
      case 1:
        a.page_stride_beats = (1u << 24) - uint32_t(Below(1000));
        break;
      default:
        break;
    }
    a.num_pages = 1 + uint32_t(Below(Below(2) == 0 ? 1000 : 0xFFFFFFFF));
    a.pool = Below(uint64_t{1} << 36) << 12;
    a.num_entries = 1 + uint32_t(Below(60));
    a.table_entries = a.num_entries + uint32_t(Below(40));
    // Anywhere above the largest pool.
    a.table = ((uint64_t{1} << 47) + Below(uint64_t{1} << 46)) / 64 * 64;
    if (Below(3) == 0) a.burst_beats = 1 + uint32_t(Below(64));
    if (Below(3) == 0) a.max_outstanding = 1 + uint32_t(Below(32));
    for (uint32_t i = 0; i < a.num_entries; ++i) {
      launch.pages.push_back(
          uint32_t(Below(8) == 0 ? a.num_pages - 1 : Below(a.num_pages)));
    }
    launch.port.latency_cycles = 1 + uint32_t(Below(120));
    launch.port.jitter_cycles = uint32_t(Below(60));
    launch.port.refuse = Share();
    launch.port.pause = Share();
    launch.pause = Share();
    return launch;
  }

 private:
  std::mt19937_64 random_;
};

void WriteTable(const Launch& launch, BeatMemory* memory) {
  const size_t entries = launch.pages.size();
  for (size_t first = 0; first < entries; first += 16) {
    Beat beat;
    beat.fill(0xFFFFFFFF);  // behind the entries: never a page
    for (size_t i = first; i < std::min(entries, first + 16); ++i) {
      beat[i - first] = launch.pages[i];
    }
    memory->Write(launch.arguments.table + first * 4, beat);
  }
}

// The beats of the first `entries` slices, one after the other.
std::vector<Beat> Model(const Launch& launch, const BeatMemory& memory,
                        size_t entries) {
  const GatherArguments& a = launch.arguments;
  std::vector<Beat> beats;
  for (size_t i = 0; i < entries; ++i) {
    const uint64_t first =
        uint64_t{launch.pages[i]} * a.page_stride_beats + a.slice_beat;
    for (uint32_t j = 0; j < a.slice_beats; ++j) {
      beats.push_back(memory.Read(a.pool + (first + j) * 64));
    }
  }
  return beats;
}

TEST(KvGatherPropertyTest, StreamsTheSlicesOfThePages) {
  const uint64_t seed = TestSeed(51);
  const uint64_t wanted = WantedBursts();
  Drawer drawer(seed);
  GatherBench bench(seed);
  while (bench.kv_port.bursts() < wanted) {
    const Launch launch = drawer.Draw();
    WriteTable(launch, &bench.memory);
    bench.Prepare(launch.arguments, launch.port, launch.pause);
    ASSERT_TRUE(bench.Launch()) << "hangs";
    ASSERT_EQ(bench.stream, Model(launch, bench.memory, launch.pages.size()));
    ASSERT_EQ(bench.stream_ends, 1u);
    ASSERT_FALSE(bench.ended_empty);
    const RtlStatus status = bench.ReadStatus();
    ASSERT_EQ(status.code, KernelError::kOk);
    ASSERT_EQ(status.items_done, launch.arguments.num_entries);
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    EXPECT_TRUE(bench.PortsIdle());
    if (HasFailure()) return;
  }
  RecordProperty("bursts", testing::PrintToString(bench.kv_port.bursts()));
  RecordProperty("cycles", testing::PrintToString(bench.cycles()));
}

TEST(KvGatherPropertyTest, BadPageIndicesAreNeverRead) {
  const uint64_t seed = TestSeed(52);
  Drawer drawer(seed);
  GatherBench bench(seed);
  uint64_t bad_indices = 0;
  for (int i = 0; i < 150; ++i) {
    Launch launch = drawer.Draw();
    const uint32_t num_pages = launch.arguments.num_pages;
    size_t first_bad = launch.pages.size();
    uint32_t num_bad = 0;
    for (size_t bad = 1 + drawer.Below(3); bad > 0; --bad) {
      const size_t at = drawer.Below(launch.pages.size());
      launch.pages[at] =
          drawer.Below(2) == 0
              ? num_pages
              : uint32_t(num_pages + drawer.Below(0x100000000 - num_pages));
    }
    for (size_t at = 0; at < launch.pages.size(); ++at) {
      if (launch.pages[at] < num_pages) continue;
      first_bad = std::min(first_bad, at);
      ++num_bad;
    }
    bad_indices += num_bad;
    WriteTable(launch, &bench.memory);
    bench.Prepare(launch.arguments, launch.port, launch.pause);
    ASSERT_TRUE(bench.Launch()) << "hangs";
    ASSERT_EQ(bench.stream, Model(launch, bench.memory, first_bad));
    ASSERT_EQ(bench.stream_ends, 1u);
    ASSERT_TRUE(bench.ended_empty);
    RtlStatus status = bench.ReadStatus();
    ASSERT_EQ(status.code, KernelError::kPageIndex);
    ASSERT_EQ(status.item, first_bad);
    ASSERT_EQ(status.detail, launch.pages[first_bad]);
    ASSERT_EQ(status.bad_items, num_bad);
    ASSERT_EQ(status.items_done, first_bad);

    // The error stays, and refuses the next launch.
    bench.Prepare(launch.arguments, launch.port, launch.pause);
    ASSERT_TRUE(bench.Launch());
    ASSERT_TRUE(bench.stream.empty());
    ASSERT_TRUE(bench.ended_empty);
    status = bench.ReadStatus();
    ASSERT_EQ(status.code, KernelError::kPageIndex);
    ASSERT_EQ(status.item, first_bad);
    ASSERT_EQ(status.launches, 2u);
    bench.ClearStatus();
    ASSERT_EQ(bench.ReadStatus().launches, 0u);
    EXPECT_EQ(bench.ProtocolErrors(), std::vector<std::string>());
    EXPECT_TRUE(bench.PortsIdle());
    if (HasFailure()) return;
  }
  RecordProperty("bad_indices", testing::PrintToString(bad_indices));
}

}  // namespace
}  // namespace paged_kv::fpga_dma
