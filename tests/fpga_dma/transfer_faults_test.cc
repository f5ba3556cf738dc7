// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One fault at a time, where the transfer queue and its tracker have to do one
// thing about it. transfer_queue_simulation_test.cc has them all at once.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/transfers/scatter_list.h"
#include "fpga_dma/transfers/transfer_order.h"
#include "gtest/gtest.h"
#include "tests/fpga_dma/transfer_rig.h"

namespace paged_kv::fpga_dma {
namespace {

using absl::StatusCode;

RigOptions Options() {
  RigOptions options;
  options.shape.layers = 3;
  options.shape.kv_heads = 3;
  options.shape.head_dim = 16;
  options.shape.block_tokens = 16;
  options.stripes = 2;
  options.queue.staging_bytes = 16 << 10;
  return options;
}

FaultRule Always(CardOperation operation, FaultKind kind) {
  FaultRule rule;
  rule.operation = operation;
  rule.kind = kind;
  rule.probability = 1;
  return rule;
}

FaultRule Nth(CardOperation operation, FaultKind kind, uint64_t n) {
  FaultRule rule;
  rule.operation = operation;
  rule.kind = kind;
  rule.nth = n;
  return rule;
}

// Extents, packing by short and by long verification.
RigOptions Way(int way) {
  RigOptions options = Options();
  if (way > 0) options.kind = SlabKind::kDeviceOnly;
  options.queue.verify_scattered = way == 2;
  return options;
}

// ---- What arrives wrong ----

// Case E10: a restore of which every copy is cut short or has a flipped bit is
// refused, and what was to be overwritten is as it was.
TEST(TransferFaultsTest, CaseE10WhatArrivesWrongIsNeverVisible) {
  for (const FaultKind kind : {FaultKind::kFlipBit, FaultKind::kFail}) {
    for (int way = 0; way < 3; ++way) {
      SCOPED_TRACE(absl::StrCat(FaultKindName(kind), ", way ", way));
      RigOptions options = Way(way);
      options.faults.rules = {Always(CardOperation::kDownload, kind)};
      TransferRig rig(options);
      rig.FillDevice(4, rig.AllLayers());
      const TransferRig::Page before = rig.HostPage(2);
      const TransferResult result = rig.Move({Down(4, 2, rig.AllLayers())});
      EXPECT_EQ(result.status.code(), kind == FaultKind::kFlipBit
                                          ? StatusCode::kDataLoss
                                          : StatusCode::kInternal)
          << result.status;
      EXPECT_EQ(result.failed, std::vector<uint32_t>{0});
      EXPECT_EQ(rig.HostPage(2), before);
      EXPECT_GE(rig.queue().Stats().retries + 1, options.queue.max_attempts);
    }
  }
}

// A work list with a flipped bit could name a stranger's page: it is found
// before a kernel sees it, wherever the bit is.
TEST(TransferFaultsTest, WorkListsAreComparedBeforeTheyAreUsed) {
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RigOptions options = Way(1);
    options.stripes = 1;
    options.seed = seed;
    options.faults.seed = seed;
    // Of a packed upload the list goes first.
    options.faults.rules = {
        Nth(CardOperation::kUpload, FaultKind::kFlipBit, 1)};
    TransferRig rig(options);
    ASSERT_TRUE(rig.Move({Up(1, 4, rig.AllLayers())}).status.ok());
    ASSERT_TRUE(rig.DevicePage(4) == rig.HostPage(1));
    found += rig.queue().Stats().corruptions;
  }
  // All but those that hit the status words, a third of the list.
  EXPECT_GT(found, 25u);
}

// Case E10 on the card: a page that was uploaded in part is nobody's content,
// neither the old one nor the new one.
TEST(TransferFaultsTest, CaseE10HalfAnUploadIsNoContent) {
  for (const FaultKind kind : {FaultKind::kFlipBit, FaultKind::kFail}) {
    for (int way = 0; way < 3; ++way) {
      SCOPED_TRACE(absl::StrCat(FaultKindName(kind), ", way ", way));
      RigOptions options = Way(way);
      // Good for the first page, and again for the last one.
      for (uint64_t n = 0; n < options.queue.max_attempts; ++n) {
        const uint64_t good = way == 0 ? 2 : 4;  // uploads of a page
        for (uint64_t i = 1; i <= good; ++i) {
          options.faults.rules.push_back(
              Nth(CardOperation::kUpload, kind, good + good * n + i));
        }
      }
      TransferRig rig(options);
      ASSERT_TRUE(rig.Move({Up(1, 4, rig.AllLayers())}).status.ok());
      const TransferRig::Page before = rig.HostPage(2);
      const TransferResult up = rig.Move({Up(3, 4, rig.AllLayers())});
      ASSERT_FALSE(up.status.ok());
      const TransferResult down = rig.Move({Down(4, 2, rig.AllLayers())});
      EXPECT_EQ(down.status.code(), StatusCode::kDataLoss) << down.status;
      EXPECT_EQ(rig.HostPage(2), before);
    }
  }
}

// Slots behind the last byte of a layer are zeros, whatever the slab held.
TEST(TransferFaultsTest, PaddingIsZeros) {
  for (int way = 0; way < 3; ++way) {
    SCOPED_TRACE(way);
    RigOptions options = Way(way);
    options.shape.head_dim = 5;
    options.shape.block_tokens = 3;
    options.stripes = 1;
    TransferRig rig(options);
    const PoolGeometry& geometry = rig.pool().geometry();
    const uint64_t bytes = geometry.LayerBytes(0);
    const uint64_t stride = geometry.LayerStride(0);
    ASSERT_LT(bytes, stride);
    const SlabRange all = {rig.pool().slab(0), 0, geometry.SlabBytes(0)};
    const absl::Span<std::byte> memory = rig.device().DeviceMemory(all).value();
    std::memset(memory.data(), 0xA5, memory.size());
    if (way == 0) {
      const auto image = rig.device().HostImage(all.slab).value();
      std::memset(image.data(), 0xA5, image.size());
    }
    ASSERT_TRUE(rig.Move({Up(1, 4, rig.AllLayers())}).status.ok());
    for (uint32_t layer = 0; layer < options.shape.layers; ++layer) {
      const uint64_t end = geometry.Offset(4, 0, layer) + stride;
      for (uint64_t i = end - (stride - bytes); i < end; ++i) {
        ASSERT_EQ(memory[i], std::byte{0}) << "layer " << layer;
      }
    }
  }
}

// ---- Resets ----

TEST(TransferFaultsTest, SomebodyElsesResetLosesPages) {
  TransferRig rig(Options());
  const LayerRange all = rig.AllLayers();
  ASSERT_TRUE(rig.Move({Up(1, 4, all)}).status.ok());
  const auto up =
      rig.queue().Submit({{Up(2, 5, all)}}, TransferPriority::kDecode);
  ASSERT_TRUE(up.ok());
  rig.queue().Advance(absl::InfinitePast());
  ASSERT_TRUE(rig.device().Reset().ok());
  ASSERT_TRUE(rig.queue().Wait(*up, absl::InfiniteFuture()).ok());
  const auto result = rig.queue().TakeResult();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok()) << result->status;
  EXPECT_EQ(rig.DevicePage(5), rig.HostPage(2));
  const TransferResult down = rig.Move({Down(4, 3, all)});
  EXPECT_EQ(down.status.code(), StatusCode::kDataLoss) << down.status;
  EXPECT_TRUE(rig.Move({Down(5, 3, all)}).status.ok());
  // It was known, not found out from what was read.
  EXPECT_EQ(rig.tracker().generation(), 1u);
  EXPECT_EQ(rig.queue().Stats().corruptions, 0u);
}

// A reset between the stripes of a page, or between pages of a list, takes what
// has arrived along. The queue says so, or the page is there.
TEST(TransferFaultsTest, AnUploadOfBeforeAResetDoesNotCount) {
  uint32_t lost = 0;
  for (uint64_t n = 1; n <= 12; ++n) {
    SCOPED_TRACE(n);
    RigOptions options = Options();
    options.channels = 1;
    options.queue.max_lone_pieces = 8;
    options.faults.rules = {Nth(CardOperation::kUpload, FaultKind::kHang, n)};
    TransferRig rig(options);
    const LayerRange all = rig.AllLayers();
    const TransferResult result =
        rig.Move({Up(1, 4, all), Up(2, 9, all), Up(3, 2, all)});
    EXPECT_EQ(result.status.ok(), result.failed.empty());
    EXPECT_EQ(result.generation, rig.tracker().generation());
    const TransferQueueStats stats = rig.queue().Stats();
    EXPECT_EQ(stats.pages_up + stats.pages_failed, 3u);
    EXPECT_EQ(stats.pages_failed, result.failed.size());
    const uint32_t pages[][2] = {{1, 4}, {2, 9}, {3, 2}};
    for (uint32_t i = 0; i < 3; ++i) {
      const bool failed =
          std::count(result.failed.begin(), result.failed.end(), i) > 0;
      lost += failed ? 1 : 0;
      if (!failed) {
        EXPECT_TRUE(rig.DevicePage(pages[i][1]) == rig.HostPage(pages[i][0]))
            << "page " << i;
      }
      EXPECT_EQ(rig.Move({Down(pages[i][1], 8, all)}).status.ok(), !failed);
    }
  }
  EXPECT_GT(lost, 3u);
}

// A reset that comes when operations have ended and the queue has not seen it.
TEST(TransferFaultsTest, AResetBehindTheLastOperationIsNoticed) {
  for (int pumps = 1; pumps <= 3; ++pumps) {
    for (const bool up : {true, false}) {
      SCOPED_TRACE(absl::StrCat(pumps, up ? ", upload" : ", download"));
      RigOptions options = Options();
      options.stripes = 1;
      TransferRig rig(options);
      const LayerRange all = rig.AllLayers();
      ASSERT_TRUE(rig.Move({Up(1, 4, all)}).status.ok());
      const auto id = rig.queue().Submit(
          {{up ? Up(2, 9, all) : Down(4, 2, all)}}, TransferPriority::kDecode);
      ASSERT_TRUE(id.ok());
      // Each waits for one operation, and then starts the next.
      for (int i = 1; i < pumps; ++i) {
        rig.queue().Advance(absl::InfiniteFuture());
      }
      rig.queue().Advance(absl::InfinitePast());
      rig.tracker().Pump(absl::InfiniteFuture());
      ASSERT_TRUE(rig.tracker().Reset("a test").ok());
      (void)rig.queue().Wait(*id, absl::InfiniteFuture());
      const auto result = rig.queue().TakeResult();
      ASSERT_TRUE(result.has_value());
      if (up && result->status.ok() &&
          result->generation == rig.tracker().generation()) {
        EXPECT_TRUE(rig.DevicePage(9) == rig.HostPage(2));
      }
      if (!up && result->status.ok()) {
        EXPECT_TRUE(rig.HostPage(2) == rig.HostPage(1));
      }
      const uint64_t corruptions = rig.queue().Stats().corruptions;
      EXPECT_TRUE(absl::IsDataLoss(rig.Move({Down(4, 3, all)}).status));
      EXPECT_EQ(rig.queue().Stats().corruptions, corruptions);
    }
  }
}

TEST(TransferFaultsTest, AResetThatFailsIsTriedAgain) {
  RigOptions options = Options();
  options.faults.rules = {Nth(CardOperation::kUpload, FaultKind::kHang, 1),
                          Nth(CardOperation::kReset, FaultKind::kFail, 1)};
  options.stripes = 1;
  TransferRig rig(options);
  EXPECT_TRUE(rig.Move({Up(1, 4, rig.AllLayers())}).status.ok());
  EXPECT_TRUE(rig.DevicePage(4) == rig.HostPage(1));
  EXPECT_EQ(rig.queue().Stats().timeouts, 1u);
  EXPECT_EQ(rig.queue().Stats().resets, 1u);
}

TEST(TransferFaultsTest, ACardThatHangsAfterEveryResetIsGivenUp) {
  RigOptions options = Options();
  options.limits.max_resets = 3;
  options.queue.max_attempts = 100;
  options.faults.rules = {Always(CardOperation::kUpload, FaultKind::kHang)};
  TransferRig rig(options);
  const TransferResult result =
      rig.Move({Up(1, 4, rig.AllLayers()), Up(2, 9, rig.AllLayers())});
  EXPECT_FALSE(result.status.ok());
  EXPECT_EQ(result.failed, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(absl::IsUnavailable(rig.tracker().health()));
  EXPECT_EQ(rig.queue().Stats().resets, 4u);
  // From now on all fails at once.
  const absl::Time now = rig.device().Now();
  const TransferResult next = rig.Move({Up(1, 4, rig.AllLayers())});
  EXPECT_EQ(next.status.code(), StatusCode::kUnavailable) << next.status;
  EXPECT_EQ(rig.device().Now(), now);
}

// ---- Late operations ----

// Cases E1 and E2 at worst: the upload of an aborted page comes when everybody
// has given it up. The next owner's bytes stay.
TEST(TransferFaultsTest, CasesE1E2ALateWriteHitsNobody) {
  for (uint64_t n = 1; n <= 4; ++n) {
    SCOPED_TRACE(n);
    RigOptions options = Options();
    options.limits.base = absl::Milliseconds(5);
    FaultRule late = Nth(CardOperation::kUpload, FaultKind::kDelay, n);
    late.delay = absl::Milliseconds(50);
    options.faults.rules = {late};
    TransferRig rig(options);
    const LayerRange all = rig.AllLayers();
    const auto aborted =
        rig.queue().Submit({{Up(1, 4, all)}}, TransferPriority::kDecode);
    ASSERT_TRUE(aborted.ok());
    rig.queue().Advance(absl::InfinitePast());
    ASSERT_TRUE(rig.queue().Cancel(*aborted).ok());
    EXPECT_TRUE(rig.queue().DevicePageBusy(4));
    const auto next =
        rig.queue().Submit({{Up(2, 4, all)}}, TransferPriority::kDecode);
    ASSERT_TRUE(next.ok());
    ASSERT_TRUE(rig.queue().Wait(*next, absl::InfiniteFuture()).ok());
    // Long after the late one would have come.
    rig.queue().Advance(rig.device().Now() + absl::Seconds(1));
    absl::Status status;
    while (const auto result = rig.queue().TakeResult()) {
      if (result->id == *next) status = result->status;
    }
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    if (status.ok()) {
      EXPECT_TRUE(rig.DevicePage(4) == rig.HostPage(2));
    }
    EXPECT_EQ(rig.Move({Down(4, 8, all)}).status.ok(), status.ok());
    rig.ExpectNoMisuse();
  }
}

TEST(TransferFaultsTest, ALostCompletionEndsWithoutAReset) {
  RigOptions options = Options();
  options.faults.rules = {
      Nth(CardOperation::kUpload, FaultKind::kLoseCompletion, 1),
      Nth(CardOperation::kDownload, FaultKind::kLoseCompletion, 3)};
  TransferRig rig(options);
  EXPECT_TRUE(rig.Move({Up(1, 4, rig.AllLayers())}).status.ok());
  EXPECT_TRUE(rig.Move({Down(4, 2, rig.AllLayers())}).status.ok());
  EXPECT_EQ(rig.HostPage(2), rig.HostPage(1));
  EXPECT_EQ(rig.queue().Stats().timeouts, 2u);
  EXPECT_EQ(rig.queue().Stats().resets, 0u);
}

// ---- Staging slabs ----

TEST(TransferFaultsTest, TheLastStagingSlabIsKeptForDecodes) {
  RigOptions options = Options();
  options.kind = SlabKind::kDeviceOnly;
  options.stripes = 1;
  options.queue.staging_slabs = 2;
  options.queue.channel_depth = 8;
  TransferRig rig(options);
  std::vector<PageTransfer> many;
  for (uint32_t i = 0; i < 8; ++i) many.push_back(Up(i, i, rig.AllLayers()));
  ASSERT_TRUE(rig.queue().Submit(many, TransferPriority::kWriteBack).ok());
  rig.queue().Advance(absl::InfinitePast());
  const auto urgent = rig.queue().Submit({{Up(9, 9, rig.AllLayers())}},
                                         TransferPriority::kDecode);
  ASSERT_TRUE(urgent.ok());
  rig.queue().Advance(absl::InfinitePast());
  const TransferQueueStats stats = rig.queue().Stats();
  EXPECT_EQ(stats.waits[0], 1u);
  EXPECT_EQ(stats.wait_max[0], absl::ZeroDuration());
  ASSERT_TRUE(rig.queue().Wait(*urgent, absl::InfiniteFuture()).ok());
}

// Case E9 at worst: one operation of a packed bundle fails while the other
// still reads the staging slab. Whoever waits for the slab gets it behind that.
TEST(TransferFaultsTest, CaseE9AFailedBundleKeepsItsSlabToTheLastOperation) {
  RigOptions options = Options();
  options.kind = SlabKind::kDeviceOnly;
  options.stripes = 1;
  options.queue.staging_slabs = 1;
  options.queue.max_attempts = 1;
  FaultRule late = Nth(CardOperation::kUpload, FaultKind::kDelay, 2);
  late.delay = absl::Milliseconds(2);
  options.faults.rules = {Nth(CardOperation::kUpload, FaultKind::kFail, 1),
                          late};
  TransferRig rig(options);
  const LayerRange all = rig.AllLayers();
  const auto failing =
      rig.queue().Submit({{Up(1, 4, all)}}, TransferPriority::kDecode);
  rig.queue().Advance(absl::InfinitePast());
  const auto next =
      rig.queue().Submit({{Up(2, 9, all)}}, TransferPriority::kDecode);
  ASSERT_TRUE(failing.ok() && next.ok());
  ASSERT_TRUE(rig.queue().Wait(*next, absl::InfiniteFuture()).ok());
  rig.queue().Advance(rig.device().Now() + absl::Seconds(1));
  const auto first = rig.queue().TakeResult();
  const auto second = rig.queue().TakeResult();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(first->status.ok());
  EXPECT_TRUE(second->status.ok()) << second->status;
  EXPECT_TRUE(rig.DevicePage(9) == rig.HostPage(2));
  rig.ExpectNoMisuse();
}

// Case E8: an index that pads a table is refused, not moved.
TEST(TransferFaultsTest, CaseE8PaddingIsRefused) {
  TransferRig rig(Options());
  const uint32_t padding = static_cast<uint32_t>(-1);
  const LayerRange all = rig.AllLayers();
  for (const PageTransfer& page :
       {Up(padding, 0, all), Up(0, padding, all), Down(padding, 0, all),
        Down(0, padding, all)}) {
    EXPECT_EQ(rig.queue()
                  .Submit({{Up(1, 1, all), page}}, TransferPriority::kDecode)
                  .status()
                  .code(),
              StatusCode::kOutOfRange);
  }
  EXPECT_EQ(rig.queue().unfinished(), 0u);
}

// ---- Lists of a kernel ----

// Anything but the status of one whole, good run of this very list is an error.
TEST(ScatterListTest, EveryOtherStatusWordIsAnError) {
  const std::vector<ScatterRun> runs = {{3, 0, 8}, {1, 16, 8}};
  const ScatterPool pool = {SlabId(1), 8, 24};
  std::vector<std::byte> lists(ScatterList::Bytes(runs.size()));
  ScatterList::Write(runs, pool, /*tag=*/77, absl::MakeSpan(lists));
  EXPECT_EQ(ScatterList::CheckScatter(lists, 2, 77).code(),
            StatusCode::kInternal)
      << "it has not run";
  KernelStatus good{};
  good.items_done = 2;
  good.tag = 77;
  good.launches = 1;
  const auto check = [&](const KernelStatus& status) {
    std::memcpy(lists.data(), &status, sizeof(status));
    std::memcpy(lists.data() + kBeatBytes, &status, sizeof(status));
    const absl::StatusCode code =
        ScatterList::CheckScatter(lists, 2, 77).code();
    EXPECT_EQ(ScatterList::CheckGather(lists, 2, 77).code(), code);
    return code;
  };
  EXPECT_EQ(check(good), StatusCode::kOk);
  KernelStatus bad = good;
  bad.code = KernelError::kPageIndex;
  EXPECT_EQ(check(bad), StatusCode::kInternal);
  bad = good;
  bad.items_done = 1;
  EXPECT_EQ(check(bad), StatusCode::kInternal);
  bad = good;
  bad.tag = 76;
  EXPECT_EQ(check(bad), StatusCode::kInternal);
  bad = good;
  bad.launches = 2;
  EXPECT_EQ(check(bad), StatusCode::kInternal);
  bad = good;
  bad.reserved[3] = 1;
  EXPECT_EQ(check(bad), StatusCode::kInternal);
}

// ---- Order ----

TEST(TransferOrderTest, OnlyTheLastWriteSpoilsARead) {
  const LayerRange all = {0, 3};
  for (const bool first_arrives : {false, true}) {
    for (const bool second_arrives : {false, true}) {
      TransferOrder order;
      EXPECT_EQ(order.Add(0, Down(0, 7, all)), 0u);
      EXPECT_EQ(order.Add(1, Down(1, 7, all)), 1u);
      EXPECT_EQ(order.Add(2, Up(7, 2, all)), 2u);
      std::vector<TransferOrder::Released> released;
      order.Finish(0, first_arrives, &released);
      ASSERT_EQ(released.size(), 1u);
      EXPECT_EQ(released[0].item, 1u);
      EXPECT_FALSE(released[0].spoiled);
      released.clear();
      order.Finish(1, second_arrives, &released);
      ASSERT_EQ(released.size(), 1u);
      EXPECT_EQ(released[0].item, 2u);
      EXPECT_EQ(released[0].spoiled, !second_arrives);
    }
  }
}

TEST(TransferOrderTest, AWriteOfSomeLayersLeavesTheOthersSpoiled) {
  TransferOrder order;
  order.Add(0, Down(0, 7, {0, 3}));
  order.Add(1, Down(1, 7, {0, 2}));
  order.Add(2, Up(7, 2, {0, 3}));
  std::vector<TransferOrder::Released> released;
  order.Finish(0, false, &released);
  order.Finish(1, true, &released);
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[1].item, 2u);
  EXPECT_TRUE(released[1].spoiled);
}

TEST(TransferOrderTest, ReadersOfAHostPageDoNotWaitAndItsWriterDoes) {
  TransferOrder order;
  EXPECT_EQ(order.Add(0, Up(7, 0, {0, 3})), 0u);
  EXPECT_EQ(order.Add(1, Up(7, 1, {0, 3})), 0u);
  EXPECT_EQ(order.Add(2, Down(2, 7, {1, 1})), 2u);
  EXPECT_TRUE(order.HostPageBusy(7));
  std::vector<TransferOrder::Released> released;
  order.Finish(0, true, &released);
  EXPECT_TRUE(released.empty());
  order.Finish(1, false, &released);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_FALSE(released[0].spoiled);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
