// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// paged_decode behind the Verilated kv_gather against paged_decode alone.

#include "fpga_dma/rtl_engine/rtl_kernels.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <limits>

#include "fpga_dma/card_model/board.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

// Both builds on the same launch: all of the output, and the status word.
void ExpectSame(DecodeCase launch, RtlWork* work) {
  DecodeCase other = launch;
  std::memset(other.status.data(), 0, other.status.size());
  ASSERT_TRUE(launch.Run(kSequentialKernels).ok());
  const absl::Status status =
      RunRtlPagedDecode(other.Arguments(), PortTiming(), work);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(other.out == launch.out);
  EXPECT_TRUE(other.status == launch.status);
}

class RtlKernelsPropertyTest : public testing::TestWithParam<KvElement> {};

TEST_P(RtlKernelsPropertyTest, DecodesWhatPagedDecodeDoes) {
  std::mt19937_64 random(TestSeed(61));
  uint64_t beats = 0;
  for (int i = 0; i < 40; ++i) {
    DecodeCase launch = RandomDecodeCase(GetParam(), random);
    launch.PoisonUnused();
    RtlWork work;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(launch, &work));
    if (HasFailure()) return;
    beats += work.beats;
  }
  EXPECT_GT(beats, 10000u);
}

TEST_P(RtlKernelsPropertyTest, EndsWhereABadItemEndsPagedDecode) {
  std::mt19937_64 random(TestSeed(62));
  for (int i = 0; i < 24; ++i) {
    DecodeCase launch = RandomDecodeCase(GetParam(), random);
    const uint32_t bad = uint32_t(random() % launch.shape.num_items);
    DecodeItem item = launch.Item(bad);
    switch (i % 6) {
      case 0:
        launch.table.Set<uint32_t>(item.table_begin, launch.shape.num_pages);
        break;
      case 1:
        launch.table.Set<uint32_t>(item.table_begin, 0xFFFFFFFFu);
        break;
      case 2:
        item.num_tokens = 0;
        break;
      case 3:
        item.table_begin = launch.shape.table_entries;
        break;
      case 4:
        item.slice_beat = launch.page_stride_beats;
        break;
      default:
        item.scale = std::numeric_limits<float>::infinity();
        break;
    }
    launch.SetItem(bad, item);
    RtlWork work;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(launch, &work));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, RtlKernelsPropertyTest,
                         testing::Values(KvElement::kBf16, KvElement::kInt8),
                         [](const auto& element) {
                           return element.param == KvElement::kInt8 ? "Int8"
                                                                    : "Bf16";
                         });

// What the board's model says of a port that reads slices, and what the RTL
// takes for them.
TEST(RtlKernelsTest, TakesTheCyclesOfTheBoardsModel) {
  std::mt19937_64 random(TestSeed(63));
  for (const char* name : {"u250", "u280", "u55c"}) {
    const absl::StatusOr<Board> board = BuiltinBoard(name);
    ASSERT_TRUE(board.ok()) << board.status();
    const BurstEfficiency& burst = board->banks[0].burst;
    for (const uint32_t block_tokens : {16u, 32u, 64u}) {
      DecodeShape shape;
      shape.block_tokens = block_tokens;
      shape.num_pages = shape.table_entries = 4096 / block_tokens;
      DecodeCase launch(shape);
      launch.Fill(random);
      DecodeItem item = launch.NewItem(0);
      item.num_tokens = 4096;
      launch.SetItem(0, item);
      RtlWork work;
      std::memset(launch.status.data(), 0, launch.status.size());
      ASSERT_TRUE(RunRtlPagedDecode(launch.Arguments(),
                                    ToPortTiming(burst.peak, burst.gap_bytes),
                                    &work)
                      .ok());
      ASSERT_EQ(launch.Status().code, KernelError::kOk);
      const double modelled = static_cast<double>(work.beats) / burst.At(4096);
      std::printf("%s, blocks of %u: %.0f cycles, modelled %.0f\n", name,
                  block_tokens, static_cast<double>(work.cycles), modelled);
      EXPECT_NEAR(static_cast<double>(work.cycles) / modelled, 1, 0.1);
    }
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma
