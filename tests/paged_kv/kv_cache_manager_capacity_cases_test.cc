// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had with capacity, and with rollback and windows,
// each with its whole kind.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

constexpr absl::StatusCode kNever = absl::StatusCode::kOutOfRange;
constexpr absl::StatusCode kNotNow = absl::StatusCode::kResourceExhausted;

TEST(CasesTest, C1_NeverFitsIsNotNotNow) {
  CacheScript cache(4, 16);
  cache.ExpectRefused(kNever, [&] { return cache->Allocate(Text(1, 100)); });
  const SequenceId id = cache.New(Text(2, 33));
  cache.ExpectRefused(kNotNow, [&] { return cache->Allocate(Text(1, 64)); });
  cache.ExpectRefused(kNever, [&] { return cache->Allocate(Text(1, 65)); });
  cache.Free(id);
  cache.Free(cache.New(Text(1, 64)));
}

TEST(CasesTest, C1_TheLimitIsExactForAnyPoolWatermarkAndWindow) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t watermark : {0u, 1u, 2u}) {
      const uint32_t blocks = 5;
      KvCacheOptions options = PoolOptions(blocks, block_tokens);
      options.watermark_blocks = BlockCount(watermark);
      CacheScript cache(options);
      const uint32_t most = (blocks - watermark) * block_tokens;
      cache.ExpectRefused(kNever,
                          [&] { return cache->Allocate(Text(1, most + 1)); });
      const SequenceId id = cache.New(Text(1, most));
      // Growth may use the watermark, but not more than the pool.
      if (watermark > 0) {
        cache.Append(id, Text(2, watermark * block_tokens));
      }
      EXPECT_EQ(cache.F(), 0u);
      cache.ExpectRefused(kNever,
                          [&] { return cache->Append(id, Text(3, 1)); });
      cache.Free(id);
    }
  }
}

TEST(CasesTest, C1_AReserveThatNeverFitsIsRefusedAsSuch) {
  CacheScript cache(4, 16);
  const std::vector<TokenId> prompt = Text(1, 10);
  StepRequest request = StepRequest::Admit(prompt);
  request.reserve_tokens = TokenCount(65);
  cache.ExpectRefused(kNever, [&] { return cache->Plan({request}); });
  request.reserve_tokens = TokenCount(64);
  cache.Retire(cache.Step({request}));
  EXPECT_EQ(cache.Held(), 4u);
  EXPECT_EQ(cache.Pool().slots.live, 10u);
  EXPECT_EQ(cache.Pool().slots.tail, 6u);
  EXPECT_EQ(cache.Pool().slots.reserved, 48u);
}

TEST(CasesTest, C1_PlanFittingLeavesOutWhatDoesNotFitAndSaysWhy) {
  CacheScript cache(4, 16);
  const std::vector<TokenId> big = Text(1, 48), fits = Text(2, 16),
                             never = Text(3, 100), late = Text(4, 17);
  const std::vector<StepRequest> requests = {
      StepRequest::Admit(big), StepRequest::Admit(never),
      StepRequest::Admit(late), StepRequest::Admit(fits)};
  std::vector<absl::Status> outcomes(requests.size());
  auto plan = cache->PlanFitting(requests, absl::MakeSpan(outcomes));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  EXPECT_EQ(outcomes[1].code(), kNever) << outcomes[1];
  EXPECT_EQ(outcomes[2].code(), kNotNow) << outcomes[2];
  EXPECT_TRUE(outcomes[3].ok()) << outcomes[3];
  ASSERT_EQ(plan->view().sequences.size(), 2u);
  EXPECT_EQ(plan->view().sequences[0].request, 0u);
  EXPECT_EQ(plan->view().sequences[1].request, 3u);
  const auto step = cache->Commit(*std::move(plan));
  ASSERT_TRUE(step.ok()) << step.status();
  cache.Retire(*step);
  EXPECT_EQ(cache.F(), 0u);
}

TEST(CasesTest, C5_AdmissionAndAllocationUseTheSameNumber) {
  // Whatever the window: a plan is made if and only if the blocks it would
  // take are there, and taking them takes exactly as many.
  for (uint32_t window : {0u, 16u, 48u, 100u}) {
    for (uint32_t blocks = 1; blocks <= 6; ++blocks) {
      for (uint32_t prompt : {1u, 16u, 47u, 48u, 49u, 64u, 65u}) {
        SCOPED_TRACE(absl::StrCat(window, " ", blocks, " ", prompt));
        CacheScript cache(PoolOptions(blocks, 16, window));
        const std::vector<TokenId> tokens = Text(1, prompt);
        const uint32_t needed = CeilDiv(prompt, 16);
        if (needed > blocks) {
          cache.ExpectRefused(kNever, [&] { return cache->Allocate(tokens); });
          continue;
        }
        auto plan = cache->Plan({StepRequest::Admit(tokens)});
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(plan->view().new_blocks.size(), needed);
        const auto step = cache->Commit(*std::move(plan));
        ASSERT_TRUE(step.ok()) << step.status();
        EXPECT_EQ(cache.Held(), needed);
        cache.Retire(*step);
      }
    }
  }
}

TEST(CasesTest, C5_AWindowedSequenceRunsForeverInWindowPlusOneBlocks) {
  // The window of 48 tokens spreads over at most four blocks of 16.
  CacheScript cache(PoolOptions(4, 16, 48));
  const SequenceId id = cache.New(Text(1, 60));
  for (uint32_t i = 0; i < 300; ++i) {
    cache.Append(id, Text(2, 1, i));
    ASSERT_LE(cache.Held(), 4u);
  }
  EXPECT_EQ(cache.Length(id), 360u);
}

TEST(CasesTest, C7_AMultiTokenAppendTakesAllItsBlocks) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t length : {1u, 4u, 6u, 15u, 16u}) {
      for (uint32_t more : {1u, 2u, 7u, 16u, 33u}) {
        SCOPED_TRACE(absl::StrCat(block_tokens, " ", length, " ", more));
        CacheScript cache(64, block_tokens);
        const SequenceId id = cache.New(Text(1, length));
        const StepId step = cache.AppendUnwritten(id, Text(2, more));
        const uint32_t before = CeilDiv(length, block_tokens);
        const uint32_t after = CeilDiv(length + more, block_tokens);
        EXPECT_EQ(cache.View(step).new_blocks.size(), after - before);
        EXPECT_EQ(cache.Table(id).size(), after);
        EXPECT_EQ(cache.Held(), after);
        cache.Retire(step);
      }
    }
  }
}

TEST(CasesTest, C7_DraftSlotsTakeTheirBlocksToo) {
  CacheScript cache(64, 4);
  const SequenceId id = cache.New(Text(1, 6));
  StepRequest request = StepRequest::Extend(id, TokenCount(1));
  request.lookahead = TokenCount(6);
  const StepId step = cache.Step({request});
  EXPECT_EQ(cache.Table(id).size(), 4u);  // ceil(13 / 4)
  EXPECT_EQ(cache.Pool().slots.lookahead, 6u);
  EXPECT_EQ(cache->TableSize(step, GroupId(0))->pages, 4u);
  cache.Retire(step);
}

TEST(CasesTest, C8_TheLastTokenOfAMaximumThatIsNoMultipleOfTheBlock) {
  for (uint32_t block_tokens : {1u, 3u, 16u, 32u}) {
    for (uint32_t most : {1u, 15u, 16u, 17u, 100u}) {
      SCOPED_TRACE(absl::StrCat(block_tokens, " ", most));
      const uint32_t width = CeilDiv(most, block_tokens);
      KvCacheOptions options = PoolOptions(128, block_tokens);
      options.max_tokens_per_sequence = most;
      CacheScript cache(options);
      const Admission full = cache.NewUnwritten(Text(1, most));
      EXPECT_EQ(cache.Table(full.id).size(), width);
      std::vector<int64_t> slots(most);
      ASSERT_TRUE(
          cache->ExportSlotMapping(full.step, GroupId(0), absl::MakeSpan(slots))
              .ok());
      const uint32_t last = most - 1;
      EXPECT_EQ(slots[last],
                int64_t{cache.Table(full.id)[last / block_tokens].value()} *
                        block_tokens +
                    last % block_tokens);
      cache.Retire(full.step);
      cache.ExpectRefused(kNever,
                          [&] { return cache->Append(full.id, Text(2, 1)); });
      cache.ExpectRefused(kNever,
                          [&] { return cache->Allocate(Text(3, most + 1)); });
      StepRequest drafts = StepRequest::Extend(full.id, TokenCount(0));
      drafts.lookahead = TokenCount(1);
      cache.ExpectRefused(kNever, [&] { return cache->Plan({drafts}); });
    }
  }
}

TEST(CasesTest, C10_WarmingTheCacheTakesNoOutputBlock) {
  for (uint32_t block_tokens : {1u, 4u, 16u, 32u}) {
    for (uint32_t blocks : {1u, 2u, 5u}) {
      const uint32_t n = blocks * block_tokens;
      CacheScript cache(blocks, block_tokens);
      const SequenceId id = cache.New(Text(1, n));
      EXPECT_EQ(cache.Held(), blocks);
      cache.Free(id);
      EXPECT_EQ(cache->Stats().blocks_taken, blocks);
      EXPECT_EQ(cache.Pool().cached.value(), blocks);
      EXPECT_EQ(cache.Hit(Text(1, n) + Text(2, 1)), n);
    }
  }
}

// ---- Rollback and windows ----

TEST(CasesTest, D1_RejectedDraftsAreCutBackAndTheHistoryStays) {
  CacheScript cache(16, 4);
  const SequenceId id = cache.New(Text(1, 7));
  cache.Append(id, Text(2, 5));
  cache.Truncate(id, 8);
  EXPECT_EQ(cache.Length(id), 8u);
  EXPECT_EQ(cache.Table(id).size(), 2u);
  EXPECT_EQ(cache.Tokens(id), Text(1, 7) + Text(2, 1));
}

TEST(CasesTest, D1_TruncateKeepsAPrefixOfAnyLength) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t keep = 1; keep <= 24; ++keep) {
      SCOPED_TRACE(absl::StrCat(block_tokens, " ", keep));
      CacheScript cache(64, block_tokens);
      const SequenceId id = cache.New(Text(1, 11));
      cache.Append(id, Text(2, 13));
      const std::vector<TokenId> all = Text(1, 11) + Text(2, 13);
      const std::vector<TokenId> kept(all.begin(), all.begin() + keep);
      const std::vector<BlockId> before = cache.Table(id);
      cache.Truncate(id, keep);
      EXPECT_EQ(cache.Tokens(id), kept);
      const std::vector<BlockId> after = cache.Table(id);
      ASSERT_EQ(after.size(), CeilDiv(keep, block_tokens));
      EXPECT_TRUE(std::equal(after.begin(), after.end(), before.begin()));
      // The other way on is written over the cut one, and both full blocks of
      // the kept part and those of the new one are hits.
      cache.Append(id, Text(3, 9));
      EXPECT_EQ(cache.Tokens(id), kept + Text(3, 9));
      EXPECT_EQ(cache.Hit(kept + Text(3, 9) + Text(4, 1)),
                (keep + 9) / block_tokens * block_tokens);
      cache.Free(id);
      EXPECT_EQ(cache.F(), 64u);
    }
  }
}

TEST(CasesTest, D1_DraftsThatAreNotAcceptedCostNothing) {
  for (uint32_t accepted = 0; accepted <= 5; ++accepted) {
    SCOPED_TRACE(accepted);
    CacheScript cache(16, 4);
    const SequenceId id = cache.New(Text(1, 7));
    const std::vector<TokenId> next = Text(2, 1);
    StepRequest request = StepRequest::Extend(id, next);
    request.lookahead = TokenCount(5);
    const StepId step = cache.Step({request});
    EXPECT_EQ(cache.View(step).sequences[0].Rows().value(), 6u);
    EXPECT_EQ(cache.Pool().slots.lookahead, 5u);
    cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                        [&] { return cache->Accept(id, Text(3, accepted)); });
    cache.Retire(step);
    ASSERT_TRUE(cache->Accept(id, Text(3, accepted)).ok());
    cache.Check();
    EXPECT_EQ(cache.Length(id), 8 + accepted);
    EXPECT_EQ(cache.Tokens(id), Text(1, 7) + Text(2, 1) + Text(3, accepted));
    EXPECT_EQ(cache.Pool().slots.lookahead, 0u);
    EXPECT_EQ(cache.Hit(cache.Tokens(id) + Text(4, 1)), (8 + accepted) / 4 * 4);
  }
}

TEST(CasesTest, D1_DraftsNeverEnterTheIndex) {
  CacheScript cache(16, 4);
  const SequenceId id = cache.New(Text(1, 4));
  StepRequest request = StepRequest::Extend(id, TokenCount(0));
  request.lookahead = TokenCount(8);
  cache.Retire(cache.Step({request}));
  EXPECT_EQ(cache.Hit(Text(1, 4) + Text(2, 5)), 4u);
  cache.Free(id);
  EXPECT_EQ(cache.Pool().cached.value(), 1u);
}

TEST(CasesTest, D3_CuttingBackBehindAReleasedBlockIsAnExplicitError) {
  CacheScript cache(PoolOptions(16, 4, 8));
  const SequenceId id = cache.New(Text(1, 12));
  cache.Append(id, Text(2, 4));
  // Blocks before position 16 - 8 + 1 = 9 are gone; token 13 needs 6 to 13.
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Truncate(id, TokenCount(13)); });
  // Token 15 needs 8 to 15, which are there.
  cache.Truncate(id, 15);
  EXPECT_EQ(cache.Length(id), 15u);
}

TEST(CasesTest, D3_WorksExactlyWhereTheSuccessorsBlocksAreHeld) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t window : {1u, 5u, 8u, 32u}) {
      for (uint32_t keep = 1; keep <= 40; ++keep) {
        SCOPED_TRACE(absl::StrCat(block_tokens, " ", window, " ", keep));
        CacheScript cache(PoolOptions(64, block_tokens, window));
        const SequenceId id = cache.New(Text(1, 40));
        const std::vector<BlockId> table = cache.Table(id);
        // The next token attends to the window behind it, and is written into
        // the block that the last kept one is in unless that is full.
        const uint32_t first = keep >= window ? keep - window + 1 : 0;
        bool held =
            keep % block_tokens == 0 || table[keep / block_tokens] != kNoBlock;
        for (uint32_t pos = first; pos < keep; ++pos) {
          held = held && table[pos / block_tokens] != kNoBlock;
        }
        if (held) {
          cache.Truncate(id, keep);
          EXPECT_EQ(cache.Length(id), keep);
          cache.Append(id, Text(2, 3));
        } else {
          cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, [&] {
            return cache->Truncate(id, TokenCount(keep));
          });
        }
      }
    }
  }
}

TEST(CasesTest, D5_RemovingAllSequencesClearsEveryPool) {
  for (bool in_flight : {false, true}) {
    KvCacheOptions options = PoolOptions(32, 4);
    LayerGroup windowed = options.groups[0];
    windowed.shape.block_tokens = 8;
    windowed.window = 16;
    LayerGroup same_page = options.groups[0];  // shares the first one's pool
    same_page.window = 8;
    options.groups.push_back(windowed);
    options.groups.push_back(same_page);
    CacheScript cache(options);
    ASSERT_EQ(cache->Stats().pools.size(), 2u);
    cache.New(Text(1, 30));
    cache.Fork(cache.New(Text(2, 17)));
    const Admission last = cache.NewUnwritten(Text(3, 20));
    if (!in_flight) cache.Retire(last.step);
    cache->FreeAll();
    cache.Check();
    EXPECT_TRUE(cache->Sequences().empty());
    for (const PoolStats& pool : cache->Stats().pools) {
      EXPECT_EQ(pool.held.value(), 0u);
      EXPECT_EQ(pool.slots.Allocated(), 0u);
    }
    if (in_flight) cache.Retire(last.step);
    for (const PoolStats& pool : cache->Stats().pools) {
      EXPECT_EQ(pool.free + pool.cached, pool.capacity);
    }
    ASSERT_TRUE(cache->Reset().ok());
    for (const PoolStats& pool : cache->Stats().pools) {
      EXPECT_EQ(pool.free, pool.capacity);
    }
  }
}

}  // namespace
}  // namespace paged_kv
