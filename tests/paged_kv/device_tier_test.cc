// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The manager's device tier: homes, seats, swaps, refusals.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/device_script.h"

namespace paged_kv {
namespace {

TEST(DeviceTierTest, WithoutADeviceEveryCallSaysSo) {
  CacheScript cache(8, 4);
  const Ids ids = {cache.New(Text(1, 4))};
  const auto code = absl::StatusCode::kFailedPrecondition;
  cache.ExpectRefused(code, [&] { return cache->SwapIn(ids); });
  cache.ExpectRefused(code, [&] { return cache->SwapOut(ids); });
  cache.ExpectRefused(code,
                      [&] { return cache->SwapInPrefix(ids, TokenCount(4)); });
  cache.ExpectRefused(code, [&] { return cache->WriteBack(BlockCount(1)); });
  cache.ExpectRefused(absl::StatusCode::kNotFound, [&] {
    return cache->FinishTransfer(TransferId(1), true);
  });
  std::vector<BlockResidency> blocks(1);
  ASSERT_TRUE(
      cache->ExportResidency(ids[0], GroupId(0), absl::MakeSpan(blocks)).ok());
  EXPECT_TRUE(blocks[0].host_valid);
  EXPECT_EQ(blocks[0].device_page, kNoPage);
  EXPECT_TRUE(cache->Stats().device_pools.empty());
}

TEST(DeviceTierTest, OptionsThatNoDeviceHasAreNamed) {
  const auto message = [](uint32_t pages, uint32_t splits) {
    const KvCacheOptions options = DeviceOptions(8, 4, pages, splits);
    return std::string(KvCacheManager::Create(options).status().message());
  };
  EXPECT_TRUE(absl::StrContains(message(9, 1), "device.pages is 9"));
  EXPECT_TRUE(absl::StrContains(message(8, 0), "device.splits is 0"));
  EXPECT_TRUE(absl::StrContains(message(8, 3), "must be a multiple"));
}

TEST(DeviceTierTest, UnknownAndRepeatedIdsChangeNothing) {
  DeviceScript cache(DeviceOptions(8, 4, 8));
  const SequenceId s = cache.New(Text(1, 4));
  const Ids twice = {s, s};
  const Ids unknown = {s, SequenceId(77)};
  cache.ExpectRefused(absl::StatusCode::kInvalidArgument,
                      [&] { return cache->SwapIn(twice); });
  cache.ExpectRefused(absl::StatusCode::kNotFound,
                      [&] { return cache->SwapIn(unknown); });
  cache.ExpectRefused(absl::StatusCode::kNotFound,
                      [&] { return cache->SwapOut(unknown); });
}

TEST(DeviceTierTest, NeverFitsIsNotNotNow) {
  KvCacheOptions options = DeviceOptions(32, 4, 8, 2);
  options.device.watermark_pages = BlockCount(1);
  DeviceScript cache(options);
  // 4 pages per split, 1 of them for growth: 6 blocks fit, 7 never do.
  const Ids long_one = {cache.New(Text(1, 28))};
  cache.ExpectRefused(absl::StatusCode::kOutOfRange,
                      [&] { return cache->SwapIn(long_one); });
  const SequenceId s = cache.NewOnDevice(Text(2, 24));
  const Ids other = {cache.New(Text(3, 4))};
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->SwapIn(other); });
  // Growth may use the watermark, and then no more.
  cache.Append(s, Text(2, 8, 24));
  EXPECT_EQ(cache.Device().free, BlockCount(0));
  const std::vector<TokenId> more = Text(2, 1, 32);
  cache.ExpectRefused(absl::StatusCode::kOutOfRange,
                      [&] { return cache->Append(s, more); });
  cache.Done(cache.Out({s}));
  cache.Append(s, more);
}

TEST(DeviceTierTest, GrowthFindsNoPageWhileOthersHaveThem) {
  DeviceScript cache(DeviceOptions(32, 4, 4));
  const SequenceId a = cache.NewOnDevice(Text(1, 8));
  const SequenceId b = cache.NewOnDevice(Text(2, 8));
  const std::vector<TokenId> next = Text(1, 1, 8);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Append(a, next); });
  EXPECT_TRUE(cache.Out({b}).empty());
  cache.Append(a, next);
  EXPECT_EQ(cache->Stats().device_evictions, 1u);
}

TEST(DeviceTierTest, SwappedOutAndInAgainMovesNothingTwice) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 10));
  cache.Append(s, Text(1, 3, 10));
  // Blocks 0 and 1 are clean; 2 and 3 were written on the device.
  const Transfers down = cache.Out({s});
  ASSERT_EQ(down.size(), 2u);
  EXPECT_EQ(down[0].logical, 3u);
  EXPECT_EQ(down[0].filled_tokens, 1u);
  EXPECT_EQ(down[1].logical, 2u);
  EXPECT_EQ(down[1].filled_tokens, 4u);
  EXPECT_EQ(cache.Export(s, Tier::kHost).status().code(),
            absl::StatusCode::kFailedPrecondition);
  cache.Done(down);
  EXPECT_TRUE(cache.Export(s, Tier::kHost).ok());
  EXPECT_EQ(cache.Export(s, Tier::kDevice).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(cache.In({s}).empty());
  EXPECT_TRUE(cache.Export(s, Tier::kDevice).ok());
}

TEST(DeviceTierTest, AWriteInHostMemoryMakesThePageStale) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 6));
  EXPECT_TRUE(cache.Out({s}).empty());
  cache.Append(s, Text(1, 1, 6));
  EXPECT_EQ(cache.Pages(s)[1], kNoPage);
  const Transfers up = cache.In({s});
  ASSERT_EQ(up.size(), 1u);
  EXPECT_EQ(up[0].logical, 1u);
  EXPECT_EQ(up[0].filled_tokens, 3u);
}

TEST(DeviceTierTest, EvictionGoesFromTheDeviceToHostMemoryToNothing) {
  DeviceScript cache(DeviceOptions(4, 4, 2));
  const std::vector<TokenId> text = Text(1, 9);
  const SequenceId s = cache.NewOnDevice(Text(1, 4));
  cache.Append(s, Text(1, 4, 4));
  cache.Free(s);
  // Cached, one page clean, one with the only copy.
  EXPECT_EQ(cache.Device().clean, BlockCount(1));
  EXPECT_EQ(cache.Device().dirty, BlockCount(1));
  EXPECT_EQ(cache.Hit(text), 8u);
  const Transfers down = cache.Back(5);
  ASSERT_EQ(down.size(), 1u);
  // Still cached, but not to be evicted while its page is being written.
  EXPECT_EQ(cache.Pool().cached, BlockCount(2));
  EXPECT_EQ(cache.F(), 3u);
  cache.Done(down);
  EXPECT_EQ(cache.F(), 4u);
  EXPECT_EQ(cache.Device().clean, BlockCount(2));
  // From the device ...
  const SequenceId t = cache.NewOnDevice(Text(2, 8));
  EXPECT_EQ(cache.Device().seated, BlockCount(2));
  EXPECT_EQ(cache.Hit(text), 8u);
  // ... and from host memory, the end first.
  cache.Done(cache.Out({t}));
  cache.Append(t, Text(2, 1, 8));
  EXPECT_EQ(cache.Hit(text), 4u);
  cache.Append(t, Text(2, 4, 9));
  EXPECT_EQ(cache.Hit(text), 0u);
}

TEST(DeviceTierTest, ContentIsNotEvictedWhileItIsWrittenBack) {
  DeviceScript cache(DeviceOptions(4, 4, 4));
  const SequenceId s = cache.NewOnDevice(Text(1, 4));
  cache.Append(s, Text(1, 4, 4));
  cache.Free(s);
  const Transfers down = cache.Back(1);
  ASSERT_EQ(down.size(), 1u);
  const std::vector<TokenId> four = Text(2, 16);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Allocate(four); });
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Reset(); });
  // It goes last in its chain, but is passed over.
  const SequenceId t = cache.New(Text(3, 12));
  EXPECT_EQ(cache.Hit(Text(1, 9)), 0u);
  for (BlockId block : cache.Table(t)) {
    EXPECT_NE(block.value(), down[0].target_page);
  }
  cache.Done(down);
  cache.Append(t, Text(3, 1, 12));
}

TEST(DeviceTierTest, ContentEvictedInHostMemoryTakesItsPageAlong) {
  DeviceScript cache(DeviceOptions(4, 4, 4));
  const SequenceId s = cache.NewOnDevice(Text(1, 4));
  cache.Append(s, Text(1, 4, 4));
  cache.Free(s);
  EXPECT_EQ(cache.Device().dirty, BlockCount(1));
  cache.New(Text(2, 16));
  EXPECT_EQ(cache.Hit(Text(1, 9)), 0u);
  EXPECT_EQ(cache.Device().free, BlockCount(4));
}

TEST(DeviceTierTest, AFailedUploadKeepsWhatComesBefore) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.New(Text(1, 14));
  const SequenceId c = cache.Fork(s);
  const Transfers up = cache.In({s, c});
  ASSERT_EQ(up.size(), 4u);
  cache.Done({up[0], up[1], up[3]});
  cache.Done({up[2]}, /*moved=*/false);
  for (SequenceId id : {s, c}) {
    const std::vector<BlockResidency> blocks = cache.Residency(id);
    EXPECT_TRUE(blocks[0].seated && blocks[1].seated);
    EXPECT_FALSE(blocks[2].seated || blocks[3].seated);
    EXPECT_EQ(blocks[2].device_page, kNoPage);
    EXPECT_TRUE(blocks[3].device_valid);
    // At home in host memory, which is whole.
    EXPECT_TRUE(cache.Export(id, Tier::kHost).ok());
  }
  EXPECT_EQ(cache->Stats().transfers_failed, 1u);
  const Transfers again = cache.In({s, c});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].logical, 2u);
  cache.Done(again);
  EXPECT_TRUE(cache.Export(s, Tier::kDevice).ok());
}

TEST(DeviceTierTest, AFailedDownloadIsRepeated) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 4));
  cache.Append(s, Text(1, 2, 4));
  cache.Done(cache.Out({s}), /*moved=*/false);
  const std::vector<TokenId> next = Text(1, 1, 6);
  // On the device alone: no step can run in host memory.
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Append(s, next); });
  EXPECT_TRUE(cache.Residency(s)[1].device_valid);
  const Transfers again = cache.Out({s});
  ASSERT_EQ(again.size(), 1u);
  cache.Done(again);
  cache.Append(s, next);
}

TEST(DeviceTierTest, AnAdmissionFetchesWhatOnlyTheDeviceHas) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 4));
  cache.Append(s, Text(1, 4, 4));
  cache.Free(s);
  const Admission next = cache.NewUnwritten(Text(1, 9));
  EXPECT_EQ(next.cached_tokens, TokenCount(8));
  const auto fetched = cache.View(next.step).transfers;
  ASSERT_EQ(fetched.size(), 1u);
  EXPECT_EQ(fetched[0].target_tier, Tier::kHost);
  EXPECT_EQ(fetched[0].logical, 1u);
  EXPECT_EQ(cache.Export(next.id, Tier::kHost).status().code(),
            absl::StatusCode::kFailedPrecondition);
  cache.Done({fetched[0]});
  EXPECT_TRUE(cache.Export(next.id, Tier::kHost).ok());
  cache.Retire(next.step);
}

TEST(DeviceTierTest, APrefixOnTheDeviceStaysWhileTheRestIsPrefilled) {
  DeviceScript cache(DeviceOptions(32, 4, 8));
  std::vector<TokenId> prompt = Text(1, 22);
  StepRequest request = StepRequest::Admit(prompt);
  request.new_tokens = TokenCount(10);
  const StepId first = cache.Step({request});
  const SequenceId s = cache.View(first).sequences[0].id;
  const Ids ids = {s};
  auto up = cache->SwapInPrefix(ids, TokenCount(10));
  ASSERT_TRUE(up.ok()) << up.status();
  ASSERT_EQ(up->size(), 2u);  // the third block is not whole yet
  EXPECT_EQ((*up)[0].after_step, first);
  const Transfers handed_off(up->begin(), up->end());
  cache.Check();
  // The next chunk runs meanwhile.
  const StepId second = cache.Step({StepRequest::Extend(s, TokenCount(12))});
  EXPECT_EQ(cache.View(second).new_blocks[0].device_page, kNoPage);
  cache.Done(handed_off);
  cache.Retire(first);
  const Transfers rest = cache.In({s});
  ASSERT_EQ(rest.size(), 4u);
  for (const TierTransfer& transfer : rest) {
    EXPECT_EQ(transfer.after_step, second) << transfer.logical;
  }
  cache.Retire(second);
  cache.Done(rest);
  EXPECT_TRUE(cache.Export(s, Tier::kDevice).ok());
}

TEST(DeviceTierTest, BlocksOfASplitHaveItsPages) {
  DeviceScript cache(DeviceOptions(64, 2, 32, 4));
  const SequenceId s = cache.NewOnDevice(Text(1, 21));
  for (uint32_t i = 0; i < 4; ++i) cache.Append(s, Text(1, 2, 21 + 2 * i));
  const std::vector<uint32_t> pages = cache.Pages(s);
  ASSERT_EQ(pages.size(), 15u);
  for (uint32_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(pages[i] / 8, i % 4) << i;
    // Alone on the device, each split is one extent.
    if (i < 4) continue;
    EXPECT_EQ(pages[i], pages[i - 4] + 1);
  }
}

TEST(DeviceTierTest, ASequenceInAStepOnTheDeviceStays) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.NewOnDevice(Text(1, 6));
  const StepId step = cache.AppendUnwritten(s, Text(1, 1, 6));
  const Ids ids = {s};
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->SwapOut(ids); });
  cache.Retire(step);
  EXPECT_EQ(cache.Out({s}).size(), 1u);
}

TEST(DeviceTierTest, AnOldNameEndsNoNewTransfer) {
  DeviceScript cache(DeviceOptions(8, 4, 1));
  const SequenceId first = cache.New(Text(1, 4));
  const Transfers old = cache.In({first});
  ASSERT_EQ(old.size(), 1u);
  cache.Done(old);
  cache.Free(first);
  const SequenceId second = cache.New(Text(2, 4));
  const Transfers now = cache.In({second});  // the same page
  ASSERT_EQ(now.size(), 1u);
  cache.ExpectRefused(absl::StatusCode::kNotFound,
                      [&] { return cache->FinishTransfer(old[0].id, true); });
  EXPECT_TRUE(cache.Residency(second)[0].in_transfer);
  cache.Done(now);
}

TEST(DeviceTierTest, ResetWaitsForTransfers) {
  DeviceScript cache(DeviceOptions(16, 4, 8));
  const SequenceId s = cache.New(Text(1, 6));
  const Transfers up = cache.In({s});
  cache.Free(s);
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Reset(); });
  cache.Done(up);
  EXPECT_TRUE(cache->Reset().ok());
  EXPECT_EQ(cache.Device().free, BlockCount(8));
}

}  // namespace
}  // namespace paged_kv
