// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fault suite through the unmodified XRT, on the emulated card.
// PAGED_KV_FAULT_SEEDS sets how many seeds are run, PAGED_KV_TEST_SEED the
// first of them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fpga_dma/fault_world.h"
#include "tests/fpga_dma/xrt/emulated_card_fixture.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

class XrtFaultSuiteTest : public EmulatedCardTest {
 protected:
  void RunSeed(uint64_t seed, FaultWorld::Counts* counts) {
    // Three stripes in two splits are more than the U250 has banks.
    ASSERT_NO_FATAL_FAILURE(Open(seed % 3 == 2 ? "u280" : "u250",
                                 {{"PAGEDKV_CARD_FAULTS", FaultMix(seed)},
                                  {"PAGEDKV_CARD_SEED", absl::StrCat(seed)},
                                  {"PAGEDKV_CARD_SLOWDOWN", "2"}}));
    {
      FaultWorld world(device_.get(), seed, /*images=*/true,
                       [](OperationTracker* tracker, const DevicePool* pool) {
                         return std::make_unique<TransferredCardPages>(tracker,
                                                                       pool);
                       });
      world.Run(120);
      counts->Add(world.counts());
    }
    device_.reset();
  }

  // In a process of its own: a run that never ended keeps its card open, and
  // the next seed would meet that one.
  void RunSeedApart(uint64_t seed, FaultWorld::Counts* counts) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::fflush(stdout);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultWorld::Counts own;
      RunSeed(seed, &own);
      std::fflush(stdout);
      const bool written = write(ends[1], &own, sizeof(own)) == sizeof(own);
      _exit(HasFailure() || !written ? 1 : 0);
    }
    close(ends[1]);
    FaultWorld::Counts own;
    const bool read_all = read(ends[0], &own, sizeof(own)) == sizeof(own);
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(read_all && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    counts->Add(own);
  }
};

TEST_F(XrtFaultSuiteTest, EveryRequestIsRightToTheByteOrReportedFailed) {
  const uint64_t first = TestSeed(1);
  const char* text = std::getenv("PAGED_KV_FAULT_SEEDS");
  const uint64_t seeds = text != nullptr ? std::strtoull(text, nullptr, 0) : 18;
  FaultWorld::Counts all;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(
        absl::StrCat("PAGED_KV_TEST_SEED=", seed,
                     " PAGED_KV_FAULT_SEEDS=1, faults: ", FaultMix(seed)));
    RunSeedApart(seed, &all);
    if (HasFailure()) return;
  }
  std::printf("%d seeds: %s\n", static_cast<int>(seeds),
              all.ToString().c_str());
  EXPECT_GT(all.uploads, seeds);
  if (seeds < 100) return;
  EXPECT_GT(all.device_steps, seeds / 2);
  EXPECT_GT(all.corruptions, seeds / 4);
  EXPECT_GT(all.timeouts, seeds / 20);
  EXPECT_GT(all.losses, seeds / 20);
  EXPECT_GT(all.full_banks, 0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
