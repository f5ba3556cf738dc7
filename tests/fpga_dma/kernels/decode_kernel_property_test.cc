// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// paged_decode against a model of its arithmetic, bit for bit, and against
// double precision.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "fpga_dma/kernels/stand_in/stage_threads.h"
#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/decode_case.h"
#include "tests/fpga_dma/kernels/decode_model.h"
#include "tests/fpga_dma/kernels/kernel_builds.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr int kShapes = 500;
constexpr int kSchedules = 200;

// The largest difference between `out` and double precision.
double Error(const DecodeCase& launch) {
  double worst = 0;
  const uint32_t row_floats = OutRowBeats(launch.shape.head_dim) * 16;
  for (uint32_t i = 0; i < launch.shape.num_items; ++i) {
    const DecodeItem item = launch.Item(i);
    const ExactAttention exact = ExactItem(launch, item);
    for (uint32_t head = 0; head < launch.shape.group_heads; ++head) {
      for (uint32_t d = 0; d < launch.shape.head_dim; ++d) {
        const float out = launch.out.Get<float>(size_t{item.out_beat} * 16 +
                                                head * row_floats + d);
        const double want = exact.out[head * launch.shape.head_dim + d];
        worst = std::fmax(worst, std::isnan(out) ? 1e9 : std::fabs(out - want));
      }
      const float lse =
          launch.out.Get<float>(size_t{item.lse_beat} * 16 + head);
      worst = std::fmax(
          worst, std::isnan(lse) ? 1e9 : std::fabs(lse - exact.lse[head]));
    }
  }
  return worst;
}

void ExpectDone(const DecodeCase& launch) {
  const KernelStatus status = launch.Status();
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.items_done, launch.shape.num_items);
  EXPECT_EQ(status.tag, 77u);
  EXPECT_EQ(status.launches, 1u);
}

class DecodeKernelPropertyTest : public testing::TestWithParam<KvElement> {};

TEST_P(DecodeKernelPropertyTest, EveryBuildEqualsTheModelToTheBit) {
  std::mt19937_64 random(TestSeed(20261130));
  double worst = 0;
  for (int i = 0; i < kShapes; ++i) {
    DecodeCase launch = RandomDecodeCase(GetParam(), random);
    launch.PoisonUnused();
    SCOPED_TRACE(testing::Message()
                 << "shape " << i << ": head_dim " << launch.shape.head_dim
                 << " group " << launch.shape.group_heads << " block "
                 << launch.shape.block_tokens);
    const CardMemory model = ModelOutputs(launch);
    ASSERT_TRUE(launch.Run(kSequentialKernels).ok());
    ExpectDone(launch);
    ASSERT_TRUE(launch.out == model);
    worst = std::fmax(worst, Error(launch));
    if (i % 4 != 0) continue;
    DecodeCase threaded = launch;
    std::memset(threaded.out.data(), 0xA5, threaded.out.size());
    SetStageSeed(random());
    ASSERT_TRUE(threaded.Run(kThreadedKernels).ok());
    ExpectDone(threaded);
    ASSERT_TRUE(threaded.out == model);
  }
  EXPECT_EQ(LeftoverStreams(), 0u);
  RecordProperty("shapes", kShapes);
  RecordProperty("largest_error", testing::PrintToString(worst));
  EXPECT_LE(worst, 1e-3);
}

// FIFOs are as deep as speed needs. Progress needs one element in each.
TEST_P(DecodeKernelPropertyTest, DepthsAreForSpeedAlone) {
  std::mt19937_64 random(TestSeed(6));
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    DecodeCase launch = RandomDecodeCase(GetParam(), random);
    SetStreamDepthLimit(1);
    SetStageSeed(random());
    ASSERT_TRUE(launch.Run(kThreadedKernels).ok());
    SetStreamDepthLimit(0);
    ExpectDone(launch);
    ASSERT_TRUE(launch.out == ModelOutputs(launch));
  }
}

TEST_P(DecodeKernelPropertyTest, NoScheduleOfTheStagesBlocks) {
  const uint64_t seed = TestSeed(5);
  std::mt19937_64 random(seed);
  DecodeShape shape;
  shape.element = GetParam();
  shape.num_items = 3;
  shape.block_tokens = 32;
  DecodeCase launch(shape);
  launch.Fill(random);
  for (uint32_t i = 0; i < shape.num_items; ++i) {
    DecodeItem item = launch.NewItem(i);
    item.first_slot = 5 * i;
    item.num_tokens = 20 + 37 * i;
    launch.SetItem(i, item);
  }
  const CardMemory model = ModelOutputs(launch);
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    std::memset(launch.out.data(), 0xA5, launch.out.size());
    SetStageSeed(seed + static_cast<uint64_t>(schedule));
    ASSERT_TRUE(launch.Run(kThreadedKernels).ok());
    ExpectDone(launch);
    ASSERT_TRUE(launch.out == model);
  }
  EXPECT_EQ(LeftoverStreams(), 0u);
  RecordProperty("schedules", kSchedules);
}

INSTANTIATE_TEST_SUITE_P(Elements, DecodeKernelPropertyTest,
                         testing::Values(KvElement::kBf16, KvElement::kInt8),
                         [](const auto& param) {
                           return param.param == KvElement::kInt8 ? "Int8"
                                                                  : "Bf16";
                         });

}  // namespace
}  // namespace paged_kv::fpga_dma
