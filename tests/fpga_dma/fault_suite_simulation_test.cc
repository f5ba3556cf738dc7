// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fault suite on the simulated device. PAGED_KV_FAULT_SEEDS sets how many
// seeds are run, PAGED_KV_TEST_SEED the first of them; a seed that fails is
// printed, and repeats.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "fpga_dma/kernels/kernel_registry.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/fault_world.h"
#include "tests/fpga_dma/transfer_rig.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

FaultWorld::Counts RunSeed(uint64_t seed) {
  SimulatedDeviceOptions options;
  options.board = RigBoard(6, 1 + static_cast<uint32_t>(seed / 36 % 2));
  options.kernels = Kernels();
  options.seed = seed;
  options.max_slowdown = 2;
  options.faults = ParseFaultPlan(FaultMix(seed)).value();
  options.faults.seed = seed;
  options.detect_misuse = true;
  const auto device = SimulatedDevice::Create(options).value();
  FaultWorld world(device.get(), seed, /*images=*/false,
                   [&](OperationTracker*, const DevicePool* pool) {
                     return std::make_unique<SimulatedCardPages>(device.get(),
                                                                 pool);
                   });
  world.Run(120);
  for (const std::string& misuse : device->misuses()) ADD_FAILURE() << misuse;
  return world.counts();
}

TEST(FaultSuiteSimulationTest, EveryRequestIsRightToTheByteOrReportedFailed) {
  const uint64_t first = TestSeed(1);
  const char* text = std::getenv("PAGED_KV_FAULT_SEEDS");
  const uint64_t seeds =
      text != nullptr ? std::strtoull(text, nullptr, 0) : 240;
  FaultWorld::Counts all;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(
        absl::StrCat("PAGED_KV_TEST_SEED=", seed,
                     " PAGED_KV_FAULT_SEEDS=1, faults: ", FaultMix(seed)));
    all.Add(RunSeed(seed));
    if (HasFailure()) return;
  }
  std::printf("%d seeds: %s\n", static_cast<int>(seeds),
              all.ToString().c_str());
  if (seeds < 100) return;
  EXPECT_GT(all.device_steps, seeds);
  EXPECT_GT(all.failed_transfers, seeds);
  EXPECT_GT(all.cancels, seeds);
  EXPECT_GT(all.corruptions, seeds / 4);
  EXPECT_GT(all.timeouts, seeds / 20);
  EXPECT_GT(all.losses, seeds / 10);
  EXPECT_GT(all.lost_requests, seeds / 30);
  EXPECT_GT(all.dead_cards, 0u);
  EXPECT_GT(all.full_banks, seeds / 20);
}

TEST(FaultSuiteSimulationTest, ASeedRepeats) {
  for (uint64_t seed = 100; seed < 100 + kFaultMixes; ++seed) {
    EXPECT_EQ(RunSeed(seed).ToString(), RunSeed(seed).ToString());
  }
}

}  // namespace
}  // namespace paged_kv::fpga_dma
