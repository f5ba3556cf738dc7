// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Preemption by swap, one situation at a time.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/batch_scheduler_swap_rig.h"

namespace paged_kv {
namespace {

TEST(BatchSchedulerSwapTest, PromptsRunInHostMemoryAndDecodesOnTheDevice) {
  SwapRig rig(TwoTiers(16, 8));
  ASSERT_TRUE(rig.Submit(1, 6, 3).ok());
  EXPECT_EQ(rig.Step(), "1@host");
  // On its way: nothing to do, and no error.
  EXPECT_EQ(rig.Step(), "");
  EXPECT_EQ(rig.engine().transfers(), 2u);
  EXPECT_EQ(rig.engine().transfer(1).filled_tokens, 2u);
  EXPECT_EQ(rig.Stats().transfers, 2u);
  EXPECT_EQ(rig.Stats().on_device, 1u);
  rig.Move();
  EXPECT_EQ(rig.Step(), "1@device");
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig.Stats().swap_ins, 1u);
  EXPECT_EQ(rig.Stats().swap_outs, 0u);
  EXPECT_EQ(rig.Stats().pages_in, 2u);
  EXPECT_EQ(rig.Stats().pages_out, 0u);
}

TEST(BatchSchedulerSwapTest, WhoSamplesOneTokenNeverGoesToTheDevice) {
  SwapRig rig(TwoTiers(16, 1));
  ASSERT_TRUE(rig.Submit(1, 40, 1).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig.Stats().pages_in, 0u);
}

TEST(BatchSchedulerSwapTest, TheYoungestIsSwappedOutAndComesBack) {
  SwapRig rig(TwoTiers(32, 6));
  for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
  rig.RunToSwap();
  EXPECT_EQ(rig->Progress(RequestId(1))->costs.preemptions, 0u);
  EXPECT_EQ(rig->Progress(RequestId(2))->costs.preemptions, 1u);
  // It keeps its blocks and is running still.
  EXPECT_EQ(rig->Progress(RequestId(2))->samples_running, 1u);
  EXPECT_EQ(rig.Stats().swapped_out, 1u);
  const std::vector<FinishedRequest> finished = rig.RunToEnd();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].id, RequestId(1));
  EXPECT_EQ(rig.Stats().swap_outs, 1u);
  EXPECT_EQ(rig.Stats().swap_ins, 3u);
  EXPECT_EQ(rig.Stats().recomputed_tokens, 0u);
}

TEST(BatchSchedulerSwapTest, NobodyOvertakesWhoWaitsForTheDevice) {
  SwapRig rig(TwoTiers(64, 8));
  ASSERT_TRUE(rig.Submit(1, 20, 8).ok());  // 5 pages, up to 7
  ASSERT_TRUE(rig.Submit(2, 16, 8).ok());  // 4 pages: no room
  ASSERT_TRUE(rig.Submit(3, 3, 2).ok());   // 1 page: would fit
  std::vector<uint64_t> order;
  for (int i = 0; i < 200; ++i) {
    const std::string items = rig.Step();
    rig.Move();
    for (uint64_t id : {1, 2, 3}) {
      const bool runs =
          items.find(absl::StrCat(id, "@device")) != std::string::npos;
      if (runs && std::count(order.begin(), order.end(), id) == 0) {
        order.push_back(id);
      }
    }
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(BatchSchedulerSwapTest, WhoeverIsCheaplyRecomputedIsNotMoved) {
  BatchSchedulerOptions options = OnDevice();
  options.recompute_token_bytes = 1;  // a token costs as much as a byte
  SwapRig rig(TwoTiers(32, 6), options);
  for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
  rig.RunToSwap();
  EXPECT_EQ(rig.Stats().swap_outs, 0u);
  EXPECT_EQ(rig.Stats().swapped_out, 0u);
  EXPECT_EQ(rig->Progress(RequestId(2))->costs.preemptions, 1u);
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerSwapTest, TheRateDecidesBetweenSwapAndRecompute) {
  // The victim has 12 tokens in 3 blocks of 2,048 bytes, one of which only the
  // device has: a swap moves 8,192 bytes, 682.7 for each token.
  for (const uint64_t rate : {682, 683}) {
    BatchSchedulerOptions options = OnDevice();
    options.recompute_token_bytes = rate;
    SwapRig rig(TwoTiers(32, 6), options);
    for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
    rig.RunToSwap();
    EXPECT_EQ(rig.Stats().swap_outs, rate == 683 ? 1u : 0u) << rate;
  }
}

TEST(BatchSchedulerSwapTest, AVictimInFlightLeavesWhenItsStepHasRun) {
  BatchSchedulerOptions options = OnDevice();
  options.max_steps_in_flight = 2;
  SwapRig rig(TwoTiers(32, 6), options);
  for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
  for (int i = 0; i < 200 && rig.Stats().swap_outs == 0; ++i) {
    rig.Launch();
    rig.Move();
    if (rig.Stats().swap_outs == 0 && rig.engine().in_flight() == 2) rig.Land();
    if (rig.Stats().swap_outs == 0 && rig.engine().in_flight() > 0 &&
        i % 3 == 2) {
      rig.Land();
    }
  }
  EXPECT_EQ(rig.Stats().swap_outs, 1u);
  while (rig.engine().in_flight() > 0) rig.Land();
  EXPECT_EQ(rig.RunToEnd().size(), 2u);
}

TEST(BatchSchedulerSwapTest, SamplesShareTheirPagesOnTheDevice) {
  SwapRig rig(TwoTiers(32, 12));
  ASSERT_TRUE(rig.Submit(1, 16, 4, /*samples=*/4).ok());
  EXPECT_EQ(rig.Step(), "1@host");
  EXPECT_EQ(rig.Step(), "");
  EXPECT_EQ(rig.engine().transfers(), 4u);  // the prompt's, once
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig.Stats().swap_ins, 4u);
}

TEST(BatchSchedulerSwapTest, AFailedUploadIsTriedAgain) {
  SwapRig rig(TwoTiers(16, 8));
  ASSERT_TRUE(rig.Submit(1, 8, 4).ok());
  rig.Step();
  rig.Step();
  rig.Move(/*moved=*/false);
  EXPECT_EQ(rig.Step(), "");
  EXPECT_EQ(rig.engine().transfers(), 2u);
  rig.Move();
  EXPECT_EQ(rig.Step(), "1@device");
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  EXPECT_EQ(rig.Stats().failed_transfers, 2u);
}

TEST(BatchSchedulerSwapTest, ADeadCardEndsRequestsWithAnError) {
  BatchSchedulerOptions options = OnDevice();
  options.max_transfer_failures = 3;
  SwapRig rig(TwoTiers(32, 8), options);
  for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 4).ok());
  for (int i = 0; i < 100; ++i) {
    rig.Step();
    rig.Move(/*moved=*/false);
  }
  for (int i = 0; i < 2; ++i) {
    const std::optional<FinishedRequest> done = rig->TakeFinished();
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->samples[0].reason, FinishReason::kFailed);
    EXPECT_TRUE(absl::IsUnavailable(done->status)) << done->status;
    // What it had is right.
    EXPECT_EQ(done->Output(0).size(), 1u);
  }
  EXPECT_EQ(rig.Stats().failed, 2u);
  EXPECT_TRUE(rig.cache().Reset().ok());
}

// Content that only the device has is in the way of others, and cannot be
// moved: whoever waits for its place is told, and K/V is never lost.
TEST(BatchSchedulerSwapTest, WriteBacksThatKeepFailingEndWhoWaitsForThem) {
  BatchSchedulerOptions options = OnDevice();
  options.max_transfer_failures = 2;
  SwapRig rig(TwoTiers(32, 6), options);
  ASSERT_TRUE(rig.Submit(1, 8, 14).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
  ASSERT_GT(rig.cache().Stats().device_pools[0].dirty, BlockCount(0));
  ASSERT_TRUE(rig.Submit(2, 20, 4).ok());
  for (int i = 0; i < 100 && rig.Stats().failed == 0; ++i) {
    rig.Step();
    for (size_t n = rig.engine().transfers(); n > 0; --n) {
      const bool up = rig.engine().transfer(0).source_tier == Tier::kHost;
      ASSERT_TRUE(rig.engine().EndTransfer(0, up).ok());
      rig.Check();
    }
  }
  const std::optional<FinishedRequest> done = rig->TakeFinished();
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(absl::IsUnavailable(done->status)) << done->status;
}

TEST(BatchSchedulerSwapTest, CancelledWhileItMoves) {
  for (const bool moved : {false, true}) {
    SwapRig rig(TwoTiers(16, 8));
    ASSERT_TRUE(rig.Submit(1, 8, 4).ok());
    rig.Step();
    rig.Step();
    ASSERT_EQ(rig.engine().transfers(), 2u);
    ASSERT_TRUE(rig->Cancel(RequestId(1)).ok());
    rig.Check();
    // Its pages are nobody's until the transfers have ended.
    EXPECT_EQ(rig.cache().Stats().device_pools[0].moving, BlockCount(2));
    EXPECT_TRUE(absl::IsFailedPrecondition(rig.cache().Reset()));
    ASSERT_TRUE(rig.Submit(2, 8, 4).ok());
    EXPECT_EQ(rig.Step(), "2@host");
    rig.Move(moved);
    EXPECT_EQ(rig.RunToEnd().size(), 2u);
    EXPECT_EQ(rig.Stats().cancelled, 1u);
    EXPECT_TRUE(rig.cache().Reset().ok());
  }
}

TEST(BatchSchedulerSwapTest, CancelledWhileItIsSwappedOut) {
  SwapRig rig(TwoTiers(32, 6));
  for (uint64_t id : {1, 2}) ASSERT_TRUE(rig.Submit(id, 8, 12).ok());
  rig.RunToSwap();
  ASSERT_GT(rig.engine().transfers(), 0u);
  ASSERT_TRUE(rig->Cancel(RequestId(2)).ok());
  rig.Check();
  EXPECT_EQ(rig.Stats().swapped_out, 0u);
  rig.Move();
  rig.RunToEnd();
  EXPECT_TRUE(rig.cache().Reset().ok());
}

TEST(BatchSchedulerSwapTest, ACrashedEngineRecomputesWhatWasOnTheDevice) {
  SwapRig rig(TwoTiers(32, 8));
  ASSERT_TRUE(rig.Submit(1, 8, 8).ok());
  rig.Step();
  rig.Step();
  rig.Move();
  EXPECT_EQ(rig.Launch(), "1@device");
  ASSERT_TRUE(rig.engine().Crash().ok());
  rig.Check();
  EXPECT_EQ(rig->Progress(RequestId(1))->samples_waiting, 1u);
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

TEST(BatchSchedulerSwapTest, ASchedulerThatEndsLeavesTransfersToTheCache) {
  auto cache = KvCacheManager::Create(TwoTiers(16, 8)).value();
  ManualClock clock;
  std::vector<TierTransfer> transfers;
  {
    auto scheduler =
        BatchScheduler::Create(cache.get(), &clock, OnDevice()).value();
    const TestRequest request = SchedulerRig::Request(1, 8, 4);
    ASSERT_TRUE(request
                    .Borrow([&](const GenerationRequest& r) {
                      return scheduler->Submit(r);
                    })
                    .ok());
    const ScheduledStep step = scheduler->Schedule().value();
    ASSERT_TRUE(scheduler->Complete(step.id, {5}).ok());
    ASSERT_TRUE(scheduler->Schedule()->empty());
    const auto taken = scheduler->TakeTransfers();
    transfers.assign(taken.begin(), taken.end());
    ASSERT_EQ(transfers.size(), 2u);
  }
  for (const TierTransfer& transfer : transfers) {
    EXPECT_TRUE(cache->FinishTransfer(transfer.id, true).ok());
  }
  EXPECT_TRUE(cache->CheckInvariants().ok());
  EXPECT_TRUE(cache->Reset().ok());
}

// ---- Bad use ----

TEST(BatchSchedulerSwapTest, ADeviceThatIsNotThereIsRefused) {
  auto cache = KvCacheManager::Create(SmallCache(8, 4)).value();
  ManualClock clock;
  const auto scheduler =
      BatchScheduler::Create(cache.get(), &clock, OnDevice());
  EXPECT_TRUE(absl::IsInvalidArgument(scheduler.status()));
  EXPECT_NE(scheduler.status().message().find("decode_tier"),
            absl::string_view::npos);
}

TEST(BatchSchedulerSwapTest, WhatNeverFitsTheDeviceIsRefused) {
  SwapRig rig(TwoTiers(64, 6, /*splits=*/2));
  EXPECT_TRUE(rig.Submit(1, 20, 5).ok());                    // 24 tokens
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(2, 20, 6)));     // 25
  EXPECT_TRUE(absl::IsOutOfRange(rig.Submit(3, 20, 5, 2)));  // a copy more
  EXPECT_TRUE(rig.Submit(4, 12, 5, 2).ok());                 // 16 tokens
  EXPECT_TRUE(rig.Submit(5, 100, 1).ok()) << "does not decode";
  EXPECT_EQ(rig.RunToEnd().size(), 3u);
}

TEST(BatchSchedulerSwapTest, TransfersAreReportedOnceAndOnlyIfTaken) {
  SwapRig rig(TwoTiers(16, 8));
  EXPECT_TRUE(absl::IsNotFound(rig->FinishTransfer(TransferId(0), true)));
  EXPECT_TRUE(absl::IsNotFound(rig->FinishTransfer(TransferId(7), true)));
  ASSERT_TRUE(rig.Submit(1, 8, 4).ok());
  rig.Step();
  ASSERT_TRUE(rig->Schedule()->empty());
  const TransferId unseen(uint64_t{1} << 32);
  EXPECT_TRUE(absl::IsFailedPrecondition(rig->FinishTransfer(unseen, true)));
  const auto taken = rig->TakeTransfers();
  ASSERT_EQ(taken.size(), 2u);
  const std::vector<TierTransfer> transfers(taken.begin(), taken.end());
  EXPECT_TRUE(rig->TakeTransfers().empty());
  for (const TierTransfer& transfer : transfers) {
    EXPECT_TRUE(rig->FinishTransfer(transfer.id, true).ok());
    EXPECT_TRUE(absl::IsNotFound(rig->FinishTransfer(transfer.id, true)));
    EXPECT_TRUE(absl::IsNotFound(
        rig->FinishTransfer(TransferId(transfer.id.value() + 9), true)));
  }
  EXPECT_TRUE(absl::IsNotFound(rig->ReadyToRun(StepId(99)).status()));
  rig.Check();
}

TEST(BatchSchedulerSwapTest, ATransferReportedToTheCacheIsNotWaitedForTwice) {
  SwapRig rig(TwoTiers(16, 8));
  ASSERT_TRUE(rig.Submit(1, 8, 2).ok());
  rig.Step();
  rig.Step();
  const TransferId id = rig.engine().transfer(0).id;
  ASSERT_TRUE(rig.cache().FinishTransfer(id, true).ok());
  EXPECT_TRUE(absl::IsNotFound(rig->FinishTransfer(id, true)));
  EXPECT_EQ(rig.Stats().transfers, 1u);
  rig.Check();
}

TEST(BatchSchedulerSwapTest, PagesThatOthersHoldAreAnErrorIfNothingElseRuns) {
  SwapRig rig(TwoTiers(16, 4));
  const Admission other = rig.cache().Allocate(Prompt(90, 12)).value();
  ASSERT_TRUE(rig.cache().Retire(other.step).ok());
  const std::vector<SequenceId> ids = {other.id};
  const auto transfers = rig.cache().SwapIn(ids).value();
  for (const TierTransfer& t :
       std::vector<TierTransfer>(transfers.begin(), transfers.end())) {
    ASSERT_TRUE(rig.cache().FinishTransfer(t.id, true).ok());
  }
  ASSERT_TRUE(rig.Submit(1, 8, 2).ok());
  EXPECT_EQ(rig.Step(), "1@host");
  const auto step = rig->Schedule();
  EXPECT_TRUE(absl::IsResourceExhausted(step.status())) << step.status();
  ASSERT_TRUE(rig.cache().Free(other.id).ok());
  EXPECT_EQ(rig.RunToEnd().size(), 1u);
}

// ---- What the cache tells ----

TEST(BatchSchedulerSwapTest, AStatusTellsWhatIsLacking) {
  auto cache = KvCacheManager::Create(TwoTiers(8, 2)).value();
  EXPECT_EQ(ShortageOf(absl::OkStatus()), Shortage::kNone);
  EXPECT_EQ(ShortageOf(absl::ResourceExhaustedError("")), Shortage::kNone);
  const Admission a = cache->Allocate(Prompt(1, 4)).value();
  const Admission b = cache->Allocate(Prompt(2, 8)).value();
  ASSERT_TRUE(cache->Retire(a.step).ok());
  ASSERT_TRUE(cache->Retire(b.step).ok());
  const auto in = cache->SwapIn(std::vector<SequenceId>{a.id});
  ASSERT_TRUE(in.ok());
  const TransferId id = in->front().id;
  const std::vector<TokenId> more = {1};
  EXPECT_EQ(ShortageOf(cache->Append(a.id, more).status()),
            Shortage::kTransfers);
  ASSERT_TRUE(cache->FinishTransfer(id, true).ok());
  const std::vector<SequenceId> ids = {b.id};
  EXPECT_EQ(ShortageOf(cache->SwapIn(ids).status()), Shortage::kDevicePages);
  EXPECT_EQ(ShortageOf(cache->Allocate(Prompt(3, 24)).status()),
            Shortage::kHostBlocks);
  const std::vector<SequenceId> own = {a.id};
  EXPECT_TRUE(cache->CheckSwapIn(own, BlockCount(0)).ok());
  EXPECT_STREQ(ShortageName(Shortage::kDevicePages), "device pages");
}

TEST(BatchSchedulerSwapTest, TheCacheTellsWhereASequenceIs) {
  auto cache = KvCacheManager::Create(TwoTiers(8, 3)).value();
  const Admission a = cache->Allocate(Prompt(1, 6)).value();
  ASSERT_TRUE(cache->Retire(a.step).ok());
  const std::vector<SequenceId> ids = {a.id};
  EXPECT_TRUE(cache->CheckSwapIn(ids, BlockCount(1)).ok());
  EXPECT_TRUE(absl::IsOutOfRange(cache->CheckSwapIn(ids, BlockCount(2))));
  const auto up = cache->SwapIn(ids).value();
  const std::vector<TierTransfer> transfers(up.begin(), up.end());
  SequenceResidency found = cache->Residency(a.id).value();
  EXPECT_EQ(found.home, Tier::kDevice);
  EXPECT_EQ(found.blocks, BlockCount(2));
  EXPECT_EQ(found.moving, BlockCount(2));
  EXPECT_EQ(found.bytes, Bytes(2 * 2048));
  EXPECT_EQ(found.device_only_bytes, Bytes(0));
  for (const TierTransfer& t : transfers) {
    ASSERT_TRUE(cache->FinishTransfer(t.id, true).ok());
  }
  const std::vector<TokenId> more = {1};
  ASSERT_TRUE(cache->Retire(cache->Append(a.id, more)->step).ok());
  found = cache->Residency(a.id).value();
  EXPECT_EQ(found.moving + found.missing, BlockCount(0));
  EXPECT_EQ(found.device_only_bytes, Bytes(2048));
  EXPECT_TRUE(absl::IsNotFound(cache->Residency(SequenceId(77)).status()));
}

}  // namespace
}  // namespace paged_kv
