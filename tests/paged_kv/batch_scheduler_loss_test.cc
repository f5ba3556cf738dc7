// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A device that loses what it held, one situation at a time. Outputs are
// checked by TieredEngine's model, which is wrong wherever K/V is.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/batch_scheduler_swap_rig.h"

namespace paged_kv {
namespace {

// What a request generates that nothing disturbs.
std::vector<TokenId> Undisturbed(uint64_t id, uint32_t prompt,
                                 uint32_t output) {
  SwapRig rig(TwoTiers(64, 32));
  EXPECT_TRUE(rig.Submit(id, prompt, output).ok());
  const std::vector<FinishedRequest> done = rig.RunToEnd();
  if (done.size() != 1) return {};
  return {done[0].Output(0).begin(), done[0].Output(0).end()};
}

TEST(BatchSchedulerLossTest, WhatWasThereAloneIsComputedAgain) {
  SwapRig rig(TwoTiers(32, 16));
  ASSERT_TRUE(rig.Submit(1, 8, 12).ok());
  rig.Step();
  rig.Step();
  rig.Move();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.Step(), "1@device");
  const size_t before = rig->Output(RequestId(1), 0)->size();
  const auto loss = rig.engine().LoseDevice();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->sequences.size(), 1u);
  EXPECT_GT(loss->blocks, BlockCount(0));
  rig.Check();
  EXPECT_EQ(rig->Output(RequestId(1), 0)->size(), before);
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_waiting, 1u);
  EXPECT_EQ(rig.Stats().device_losses, 1u);
  EXPECT_EQ(rig.Stats().on_device, 0u);
  const std::vector<FinishedRequest> done = rig.RunToEnd();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].status.ok());
  EXPECT_EQ(
      std::vector<TokenId>(done[0].Output(0).begin(), done[0].Output(0).end()),
      Undisturbed(1, 8, 12));
  EXPECT_GT(rig.Stats().recomputed_tokens, 0u);
  EXPECT_TRUE(rig.cache().Reset().ok());
}

TEST(BatchSchedulerLossTest, WhoHasWrittenNothingThereGoesOnFromHostMemory) {
  SwapRig rig(TwoTiers(32, 16));
  ASSERT_TRUE(rig.Submit(1, 8, 4).ok());
  rig.Step();
  EXPECT_EQ(rig.Launch(), "");  // on its way
  EXPECT_EQ(rig.engine().transfers(), 2u);
  const auto loss = rig.engine().LoseDevice();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(loss->sequences.empty());
  rig.Check();
  EXPECT_EQ(rig.Stats().running, 1u);
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig.Stats().recomputed_tokens, 0u);
  EXPECT_EQ(rig.Stats().preemptions, 0u);
}

TEST(BatchSchedulerLossTest, SamplesThatShareLostPagesAreAllComputedAgain) {
  SwapRig rig(TwoTiers(64, 32));
  ASSERT_TRUE(rig.Submit(1, 10, 8, /*samples=*/3).ok());
  for (int i = 0; i < 4; ++i) {
    rig.Step();
    rig.Move();
  }
  ASSERT_EQ(rig.Stats().on_device, 3u);
  ASSERT_TRUE(rig.engine().LoseDevice().ok());
  rig.Check();
  EXPECT_EQ(rig.Stats().waiting, 3u);
  const std::vector<FinishedRequest> done = rig.RunToEnd();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].samples.size(), 3u);
}

TEST(BatchSchedulerLossTest, ASampleThatWasSwappedOutIsNotTouched) {
  SwapRig rig(TwoTiers(32, 8));
  for (uint64_t id : {1u, 2u}) ASSERT_TRUE(rig.Submit(id, 8, 16).ok());
  rig.RunToSwap();
  rig.Move();
  ASSERT_EQ(rig.Stats().swapped_out, 1u);
  const auto loss = rig.engine().LoseDevice();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->sequences.size(), 1u);  // of the one that was there
  EXPECT_EQ(rig->Progress(RequestId(2))->samples_running, 1u);
  rig.Check();
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerLossTest, StepsAndTransfersInFlightAreReportedFirst) {
  SwapRig rig(TwoTiers(32, 16));
  ASSERT_TRUE(rig.Submit(1, 8, 8).ok());
  rig.Step();
  rig.Launch();
  ASSERT_EQ(rig.engine().transfers(), 2u);
  const absl::Status moving = rig->LoseDevice().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(moving)) << moving;
  EXPECT_EQ(rig.Stats().transfers, 2u);
  rig.Move();
  ASSERT_EQ(rig.Launch(), "1@device");
  const absl::Status running = rig->LoseDevice().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(running)) << running;
  rig.Land();
  EXPECT_EQ(rig.Stats().device_losses, 0u);
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerLossTest, TransfersThatNobodyTookAreCalledOff) {
  SwapRig rig(TwoTiers(32, 16));
  ASSERT_TRUE(rig.Submit(1, 8, 8).ok());
  rig.Step();
  ASSERT_TRUE(rig->Schedule()->empty());
  ASSERT_EQ(rig.Stats().transfers, 2u);
  ASSERT_TRUE(rig->LoseDevice().ok());
  EXPECT_EQ(rig.Stats().transfers, 0u);
  EXPECT_TRUE(rig->TakeTransfers().empty());
  rig.Check();
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerLossTest, OthersTransfersAreReportedFirst) {
  SwapRig rig(TwoTiers(32, 16));
  const Admission other = rig.cache().Allocate(Prompt(90, 8)).value();
  ASSERT_TRUE(rig.cache().Retire(other.step).ok());
  const std::vector<SequenceId> ids = {other.id};
  const auto transfers = rig.cache().SwapIn(ids);
  ASSERT_TRUE(transfers.ok());
  const std::vector<TierTransfer> mine(transfers->begin(), transfers->end());
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->LoseDevice().status()));
  for (const TierTransfer& transfer : mine) {
    ASSERT_TRUE(rig.cache().FinishTransfer(transfer.id, true).ok());
  }
  EXPECT_TRUE(rig->LoseDevice().ok());
  ASSERT_TRUE(rig.cache().Free(other.id).ok());
  rig.Check();
}

TEST(BatchSchedulerLossTest, WithoutADeviceThereIsNothingToLose) {
  BatchSchedulerOptions options = OnDevice();
  options.decode_tier = Tier::kHost;
  SwapRig rig(TwoTiers(32, 16), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->LoseDevice().status()));
}

}  // namespace
}  // namespace paged_kv
