// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had while steps were in flight.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

std::set<BlockId> Blocks(CacheScript* cache, SequenceId id) {
  const std::vector<BlockId> table = cache->Table(id);
  return std::set<BlockId>(table.begin(), table.end());
}

bool Disjoint(const std::set<BlockId>& a, const std::set<BlockId>& b) {
  return std::none_of(a.begin(), a.end(),
                      [&b](BlockId id) { return b.count(id) != 0; });
}

TEST(CasesTest, E2_FreedBlocksReturnOnlyBehindTheFence) {
  for (uint32_t flights : {1u, 2u, 3u}) {
    for (uint32_t block_tokens : {1u, 4u, 16u}) {
      SCOPED_TRACE(absl::StrCat(flights, " in flight, block ", block_tokens));
      KvCacheOptions options = PoolOptions(8, block_tokens);
      options.max_steps_in_flight = flights + 2;
      CacheScript cache(options);
      const SequenceId s = cache.New(Text(1, 4 * block_tokens));
      const SequenceId other = cache.New(Text(2, 1));
      // Steps that write both are in flight when s goes.
      std::vector<StepId> steps;
      for (uint32_t i = 0; i < flights; ++i) {
        steps.push_back(
            cache.Step({StepRequest::Extend(other, TokenCount(1))}));
      }
      const std::set<BlockId> of_s = Blocks(&cache, s);
      cache.Free(s);
      EXPECT_EQ(cache.Pool().quarantined.value(), 4u);
      const uint32_t room = cache.F();
      // t gets what is free, never a block of s.
      if (room > 0) {
        const Admission t = cache.NewUnwritten(Text(3, room * block_tokens));
        EXPECT_TRUE(Disjoint(of_s, Blocks(&cache, t.id)));
        steps.push_back(t.step);
      }
      cache.ExpectRefused(absl::StatusCode::kResourceExhausted, [&] {
        return cache->Allocate(Text(4, block_tokens));
      });
      // The fence is the last step that was committed when s was freed.
      for (uint32_t i = 0; i < flights; ++i) {
        EXPECT_EQ(cache.F(), 0u);
        EXPECT_EQ(cache.Pool().quarantined.value(), 4u);
        cache.Retire(steps[i]);
      }
      EXPECT_EQ(cache.Pool().quarantined.value(), 0u);
      EXPECT_EQ(cache.F(), 4u);
      for (size_t i = flights; i < steps.size(); ++i) cache.Retire(steps[i]);
      cache.New(Text(5, 4 * block_tokens));
    }
  }
}

TEST(CasesTest, E2_TruncatedAndDroppedBlocksWaitToo) {
  CacheScript cache(8, 4);
  const SequenceId s = cache.New(Text(1, 12));
  const StepId step = cache.AppendUnwritten(s, Text(2, 8));
  cache.Truncate(s, 12);
  EXPECT_EQ(cache.Pool().quarantined.value(), 2u);
  EXPECT_EQ(cache.F(), 3u);
  cache.Retire(step);
  EXPECT_EQ(cache.Pool().quarantined.value(), 0u);
  EXPECT_EQ(cache.F(), 5u);
}

TEST(CasesTest, E2_WrittenContentInQuarantineCanBeHit) {
  CacheScript cache(8, 4);
  const SequenceId s = cache.New(Text(1, 8));
  const SequenceId other = cache.New(Text(2, 1));
  const StepId step = cache.Step({StepRequest::Extend(other, TokenCount(1))});
  const std::set<BlockId> of_s = Blocks(&cache, s);
  cache.Free(s);
  EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  const Admission again = cache.NewUnwritten(Text(1, 9));
  EXPECT_EQ(again.cached_tokens.value(), 8u);
  EXPECT_EQ(cache.Pool().quarantined.value(), 0u);
  for (BlockId block : of_s) EXPECT_EQ(cache.Refs(block), 1u);
  cache.Retire(step);
  for (BlockId block : of_s) EXPECT_EQ(cache.Refs(block), 1u);
  cache.Retire(again.step);
}

TEST(CasesTest, E2_NoMoreStepsThanAgreedAreInFlight) {
  for (uint32_t flights : {1u, 2u, 3u}) {
    KvCacheOptions options = PoolOptions(16, 4);
    options.max_steps_in_flight = flights;
    CacheScript cache(options);
    std::vector<StepId> steps;
    const Admission first = cache.NewUnwritten(Text(1, 4));
    steps.push_back(first.step);
    while (steps.size() < flights) {
      steps.push_back(
          cache.Step({StepRequest::Extend(first.id, TokenCount(1))}));
    }
    cache.ExpectRefused(absl::StatusCode::kResourceExhausted, [&] {
      return cache->Plan({StepRequest::Extend(first.id, TokenCount(1))});
    });
    // Out of order, twice, unknown.
    if (flights > 1) {
      cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                          [&] { return cache->Retire(steps.back()); });
    }
    cache.Retire(steps[0]);
    cache.ExpectRefused(absl::StatusCode::kNotFound,
                        [&] { return cache->Retire(steps[0]); });
    cache.ExpectRefused(absl::StatusCode::kNotFound,
                        [&] { return cache->Retire(StepId(99)); });
    for (size_t i = 1; i < steps.size(); ++i) cache.Retire(steps[i]);
  }
}

// The arrays of one exported page table.
struct Export {
  std::vector<int32_t> indptr, pages, last_page_tokens, first_token;

  explicit Export(const PageTableSize& size)
      : indptr(size.sequences + 1),
        pages(size.pages),
        last_page_tokens(size.sequences),
        first_token(size.sequences) {}
  PageTableBuffers Buffers() {
    return {absl::MakeSpan(indptr), absl::MakeSpan(pages),
            absl::MakeSpan(last_page_tokens), absl::MakeSpan(first_token)};
  }
};

TEST(CasesTest, E6_TheTableOfAStepInFlightIsNotRewritten) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    KvCacheOptions options = PoolOptions(12, block_tokens);
    CacheScript cache(options);
    const uint32_t n = 2 * block_tokens;
    const Admission one = cache.NewUnwritten(Text(1, n));
    Export v1(*cache->TableSize(one.step, GroupId(0)));
    ASSERT_TRUE(
        cache->ExportPageTable(one.step, GroupId(0), v1.Buffers()).ok());
    const Export as_uploaded = v1;

    // The next step grows the sequence; then it goes and others come.
    const StepId two = cache.AppendUnwritten(one.id, Text(2, block_tokens));
    Export v2(*cache->TableSize(two, GroupId(0)));
    ASSERT_TRUE(cache->ExportPageTable(two, GroupId(0), v2.Buffers()).ok());
    EXPECT_EQ(v1.pages, as_uploaded.pages);
    EXPECT_EQ(v1.last_page_tokens, as_uploaded.last_page_tokens);
    EXPECT_EQ(v2.pages.size(), 3u);
    EXPECT_TRUE(std::equal(v1.pages.begin(), v1.pages.end(), v2.pages.begin()));
    // Too late to export the first table again: it would not be the same.
    cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, [&] {
      Export late(*cache->TableSize(two, GroupId(0)));
      return cache->ExportPageTable(one.step, GroupId(0), late.Buffers())
          .status();
    });

    cache.Free(one.id);
    // No page that the kernels of steps 1 and 2 may read goes to another.
    EXPECT_EQ(cache.F(), 9u);
    cache.ExpectRefused(absl::StatusCode::kResourceExhausted, [&] {
      return cache->Allocate(Text(3, block_tokens));  // two are in flight
    });
    cache.Retire(one.step);
    const Admission other = cache.NewUnwritten(Text(3, 9 * block_tokens));
    for (BlockId block : cache.Table(other.id)) {
      EXPECT_EQ(std::count(v2.pages.begin(), v2.pages.end(),
                           static_cast<int32_t>(block.value())),
                0);
    }
    cache.Retire(two);
    EXPECT_EQ(cache.F(), 3u);
    cache.Retire(other.step);
  }
}

TEST(CasesTest, E6_ATableOfAFreedOrCutSequenceIsRefusedNotInvented) {
  for (bool cut : {false, true}) {
    CacheScript cache(12, 4);
    const SequenceId id = cache.New(Text(1, 8));
    const StepId step = cache.AppendUnwritten(id, Text(2, 3));
    Export table(*cache->TableSize(step, GroupId(0)));
    if (cut) {
      cache.Truncate(id, 9);
    } else {
      cache.Free(id);
    }
    cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, [&] {
      return cache->ExportPageTable(step, GroupId(0), table.Buffers()).status();
    });
    std::vector<int64_t> slots(3);
    cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, [&] {
      return cache->ExportSlotMapping(step, GroupId(0), absl::MakeSpan(slots));
    });
    cache.Retire(step);
  }
}

}  // namespace
}  // namespace paged_kv
