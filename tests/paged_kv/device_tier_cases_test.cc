// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had while pages moved between tiers.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/device_script.h"

namespace paged_kv {
namespace {

std::set<uint32_t> SetOf(const std::vector<uint32_t>& pages) {
  return std::set<uint32_t>(pages.begin(), pages.end());
}

std::set<uint32_t> DevicePagesOf(const Transfers& transfers) {
  std::set<uint32_t> pages;
  for (const TierTransfer& transfer : transfers) {
    pages.insert(transfer.target_tier == Tier::kDevice ? transfer.target_page
                                                       : transfer.source_page);
  }
  return pages;
}

template <typename T>
bool Disjoint(const std::set<T>& a, const std::set<T>& b) {
  return std::none_of(a.begin(), a.end(),
                      [&b](const T& x) { return b.count(x) != 0; });
}

TEST(CasesTest, E1_AnAbortDuringAnUploadWaitsForIt) {
  for (bool moved : {true, false}) {
    DeviceScript cache(DeviceOptions(8, 4, 4));
    const std::vector<TokenId> prompt = Text(1, 13);
    const SequenceId s = cache.New(prompt);
    const std::vector<BlockId> blocks = cache.Table(s);
    const Transfers up = cache.In({s});
    ASSERT_EQ(up.size(), 4u);
    cache.Free(s);
    EXPECT_EQ(cache.Pool().quarantined, BlockCount(4));
    EXPECT_EQ(cache.Device().moving, BlockCount(4));
    // t gets none of the blocks, and nobody gets their pages.
    const SequenceId t = cache.New(Text(2, 16));
    for (BlockId block : cache.Table(t)) {
      EXPECT_EQ(std::count(blocks.begin(), blocks.end(), block), 0);
    }
    const Ids ids = {t};
    cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                        [&] { return cache->SwapIn(ids); });
    cache.Done(up, moved);
    EXPECT_EQ(cache.Pool().quarantined, BlockCount(0));
    EXPECT_EQ(cache.Device().moving, BlockCount(0));
    // Freed once: whole blocks stay as shareable content, the rest is free.
    EXPECT_EQ(cache.Pool().cached, BlockCount(3));
    EXPECT_EQ(cache.Device().clean, BlockCount(moved ? 3 : 0));
    EXPECT_EQ(cache.Hit(prompt), 12u);
    cache.ExpectRefused(absl::StatusCode::kNotFound,
                        [&] { return cache->FinishTransfer(up[0].id, true); });
    cache.Done(cache.In({t}));
  }
}

TEST(CasesTest, E1_AnAbortDuringADownloadWaitsForIt) {
  for (bool moved : {true, false}) {
    DeviceScript cache(DeviceOptions(8, 4, 8));
    const SequenceId s = cache.NewOnDevice(Text(1, 4));
    cache.Append(s, Text(1, 7, 4));
    const Transfers down = cache.Out({s});
    ASSERT_EQ(down.size(), 2u);  // the first block is clean
    cache.Free(s);
    // The partial block would be free, the full ones cached.
    EXPECT_EQ(cache.Pool().quarantined, BlockCount(2));
    EXPECT_EQ(cache.Pool().cached, BlockCount(1));
    const SequenceId t = cache.New(Text(2, 20));
    for (BlockId block : cache.Table(t)) {
      for (const TierTransfer& transfer : down) {
        EXPECT_NE(block.value(), transfer.target_page);
      }
    }
    cache.Done(down, moved);
    EXPECT_EQ(cache.Pool().quarantined, BlockCount(0));
    EXPECT_EQ(cache.Device().dirty, BlockCount(moved ? 0 : 1));
  }
}

TEST(CasesTest, E1_AStepAndATransferBothHoldABlock) {
  DeviceScript cache(DeviceOptions(8, 4, 4));
  const Admission s = cache.NewUnwritten(Text(1, 8));
  const Transfers up = cache.In({s.id});
  ASSERT_EQ(up.size(), 2u);
  EXPECT_EQ(up[0].after_step, s.step);
  EXPECT_EQ(up[1].after_step, s.step);
  cache.Free(s.id);
  cache.Done({up[0]});
  EXPECT_EQ(cache.Pool().quarantined, BlockCount(2));
  cache.Retire(s.step);
  EXPECT_EQ(cache.Pool().quarantined, BlockCount(1));
  cache.Done({up[1]});
  EXPECT_EQ(cache.Pool().free, BlockCount(8));
  EXPECT_EQ(cache.Device().free, BlockCount(4));
}

TEST(CasesTest, E2_PagesFreedUnderAStepReturnBehindTheFence) {
  DeviceScript cache(DeviceOptions(16, 4, 4));
  const SequenceId s = cache.NewOnDevice(Text(1, 14));
  const std::set<uint32_t> of_s = SetOf(cache.Pages(s));
  ASSERT_EQ(of_s.size(), 4u);
  const StepId step = cache.AppendUnwritten(s, Text(1, 1, 14));
  cache.Free(s);
  EXPECT_EQ(cache.Device().quarantined, BlockCount(4));
  const Admission t = cache.NewUnwritten(Text(2, 8));
  const Ids ids = {t.id};
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->SwapIn(ids); });
  cache.Retire(step);
  EXPECT_EQ(cache.Device().quarantined, BlockCount(0));
  EXPECT_EQ(cache.In({t.id}).size(), 2u);
}

// A page shared with a sequence in flight stays, though its other owner leaves.
TEST(CasesTest, E2_ASharedPageOfAStepInFlightIsNotEvicted) {
  DeviceScript cache(DeviceOptions(32, 4, 5));
  const SequenceId t = cache.New(Text(2, 8));
  const Ids more = {cache.New(Text(3, 4))};
  const SequenceId a = cache.NewOnDevice(Text(1, 8));
  const SequenceId b = cache.Fork(a);
  const std::set<uint32_t> shared = SetOf(cache.Pages(a));
  const StepId step = cache.AppendUnwritten(b, Text(1, 1, 8));
  cache.Free(b);
  EXPECT_EQ(cache.Device().quarantined, BlockCount(1));
  EXPECT_TRUE(cache.Out({a}).empty());  // clean, and not in the step itself
  EXPECT_EQ(cache.Device().quarantined, BlockCount(3));
  const Transfers up = cache.In({t});
  EXPECT_EQ(up.size(), 2u);
  EXPECT_TRUE(Disjoint(shared, DevicePagesOf(up)));
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->SwapIn(more); });
  cache.Retire(step);
  EXPECT_EQ(cache.Device().clean, BlockCount(2));
  cache.Done(cache.In(more));
}

TEST(CasesTest, E4_NoTwoTransfersTouchAPage) {
  DeviceScript cache(DeviceOptions(32, 4, 16));
  const SequenceId a = cache.NewOnDevice(Text(1, 8));
  cache.Append(a, Text(1, 6, 8));
  const SequenceId b = cache.Fork(a);
  // Shared blocks are dirty once and move once.
  const Transfers down = cache.Out({a, b});
  std::set<uint32_t> targets;
  for (const TierTransfer& transfer : down) {
    EXPECT_TRUE(targets.insert(transfer.target_page).second);
    EXPECT_EQ(transfer.source_tier, Tier::kDevice);
    EXPECT_EQ(transfer.after_step, StepId(0));
  }
  EXPECT_EQ(down.size(), 2u);
  EXPECT_TRUE(cache.Out({a}).empty()) << "already on their way";
  cache.Done(down);
  EXPECT_EQ(cache.Device().clean, BlockCount(4));
}

TEST(CasesTest, E4_NothingIsCopiedFromABlockThatIsBeingLoaded) {
  DeviceScript cache(DeviceOptions(32, 4, 16));
  const SequenceId p = cache.New(Text(1, 6));
  const SequenceId c = cache.Fork(p);
  const Transfers up = cache.In({p, c});
  EXPECT_EQ(up.size(), 2u);
  const std::vector<TokenId> next = Text(2, 1);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Append(p, next); });
  cache.Done({up[0]});
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Append(p, next); });
  cache.Done({up[1]});
  const StepId step = cache.AppendUnwritten(p, next);
  ASSERT_EQ(cache.View(step).copies.size(), 1u);
  const BlockCopy copy = cache.View(step).copies[0];
  EXPECT_EQ(copy.tier, Tier::kDevice);
  EXPECT_EQ(copy.source_page, cache.Pages(c)[1]);
  EXPECT_EQ(copy.target_page, cache.Pages(p)[1]);
  EXPECT_NE(copy.source_page, copy.target_page);
  EXPECT_EQ(copy.filled_tokens, 2u);
  cache.Retire(step);
  // The last owner writes in place.
  const StepId last = cache.AppendUnwritten(c, next);
  EXPECT_TRUE(cache.View(last).copies.empty());
}

TEST(CasesTest, E4_NothingIsWrittenToABlockThatIsBeingSaved) {
  DeviceScript cache(DeviceOptions(32, 4, 16));
  const SequenceId s = cache.NewOnDevice(Text(1, 6));
  cache.Append(s, Text(1, 1, 6));
  const Transfers down = cache.Out({s});
  EXPECT_EQ(down.size(), 1u);
  // Back on the device at once: its page is still there.
  EXPECT_TRUE(cache.In({s}).empty());
  EXPECT_TRUE(cache.Export(s, Tier::kDevice).ok());
  const std::vector<TokenId> next = Text(2, 1);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Append(s, next); });
  cache.Done(down);
  cache.Append(s, next);
  EXPECT_FALSE(cache.Residency(s)[1].host_valid);
}

TEST(CasesTest, E6_APageTableStaysAsItWasExported) {
  DeviceScript cache(DeviceOptions(32, 4, 6));
  const SequenceId t = cache.New(Text(2, 12));
  const SequenceId u = cache.New(Text(3, 12));
  const SequenceId s = cache.NewOnDevice(Text(1, 11));
  const StepId step = cache.AppendUnwritten(s, Text(1, 1, 11));
  const auto table = cache.Export(s, Tier::kDevice);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::set<uint32_t> exported(table->begin(), table->end());
  ASSERT_EQ(exported.size(), 3u);
  // Whatever comes, its pages are nobody else's until the step retires.
  cache.Free(s);
  const Transfers up = cache.In({t});
  EXPECT_EQ(up.size(), 3u);
  EXPECT_TRUE(Disjoint(exported, DevicePagesOf(up)));
  cache.Done(up);
  cache.Out({t});
  const Ids ids = {u};
  // The pages of t wait for the step as well: nobody knows who it reads.
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->SwapIn(ids); });
  cache.Retire(step);
  const Transfers next = cache.In({u});
  EXPECT_EQ(next.size(), 3u);
  cache.Done(next);
}

TEST(CasesTest, E8_PaddingOfADeviceTableIsTheCallers) {
  DeviceScript cache(DeviceOptions(32, 4, 16));
  const SequenceId a = cache.NewOnDevice(Text(1, 5));
  const SequenceId b = cache.NewOnDevice(Text(2, 21));
  const StepId step = cache.Step({StepRequest::Extend(a, TokenCount(1)),
                                  StepRequest::Extend(b, TokenCount(1))});
  std::vector<int32_t> pages(2 * 8, 77), tokens(2), first(2);
  PaddedPageTableBuffers buffers;
  buffers.page_indices = absl::MakeSpan(pages);
  buffers.tokens = absl::MakeSpan(tokens);
  buffers.first_token = absl::MakeSpan(first);
  buffers.width = 8;
  buffers.padding = 3;
  ASSERT_TRUE(
      cache->ExportPaddedPageTable(step, GroupId(0), buffers, Tier::kDevice)
          .ok());
  EXPECT_EQ(tokens, (std::vector<int32_t>{6, 22}));
  for (int i = 0; i < 16; ++i) {
    const int row = i / 8, place = i % 8;
    const auto own = cache.Pages(row == 0 ? a : b);
    EXPECT_EQ(pages[static_cast<size_t>(i)],
              place < static_cast<int>(own.size())
                  ? static_cast<int32_t>(own[static_cast<size_t>(place)])
                  : 3);
  }
  std::vector<int64_t> slots(2);
  ASSERT_TRUE(cache
                  ->ExportSlotMapping(step, GroupId(0), absl::MakeSpan(slots),
                                      Tier::kDevice)
                  .ok());
  EXPECT_EQ(slots[0], int64_t{cache.Pages(a)[1]} * 4 + 1);
  EXPECT_EQ(slots[1], int64_t{cache.Pages(b)[5]} * 4 + 1);
}

// Of 10 blocks 8 survive on the device, and they are the only pages that could
// be had: 2 are missing, and counting the 8 as room would be counting twice.
TEST(CasesTest, B10_SurvivingPagesOfASwapInAreNoRoomForIt) {
  DeviceScript cache(DeviceOptions(64, 4, 12));
  const SequenceId s = cache.NewOnDevice(Text(1, 40));
  EXPECT_TRUE(cache.Out({s}).empty());
  EXPECT_EQ(cache.Device().clean, BlockCount(10));
  // Another takes the 2 free pages and the 2 of s that go first.
  const SequenceId t = cache.NewOnDevice(Text(2, 16));
  EXPECT_EQ(cache.Device().clean, BlockCount(8));
  EXPECT_EQ(cache.Device().free, BlockCount(0));
  const Ids ids = {s};
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->SwapIn(ids); });
  cache.Free(t);
  const Transfers up = cache.In({s});
  EXPECT_EQ(up.size(), 2u);
  // The end of the sequence had been evicted, not its beginning.
  EXPECT_EQ(up[0].logical, 8u);
  EXPECT_EQ(up[1].logical, 9u);
}

}  // namespace
}  // namespace paged_kv
