// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had with prefix sharing and eviction, each with
// its whole kind. Keys (adapters, tenants, images, collisions):
// kv_cache_manager_key_cases_test.cc.

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

TEST(CasesTest, B1_AFullyCachedPromptLeavesItsLastBlockToCompute) {
  for (uint32_t block_tokens : {1u, 2u, 4u, 16u, 32u}) {
    for (uint32_t blocks : {1u, 2u, 3u, 7u}) {
      SCOPED_TRACE(absl::StrCat("block ", block_tokens, " blocks ", blocks));
      const uint32_t n = blocks * block_tokens;
      const std::vector<TokenId> prompt = Text(1, n);
      CacheScript cache(64, block_tokens);
      cache.Free(cache.New(prompt));
      EXPECT_EQ(cache.Hit(prompt), (blocks - 1) * block_tokens);

      const Admission again = cache.NewUnwritten(prompt);
      EXPECT_EQ(again.cached_tokens.value(), (blocks - 1) * block_tokens);
      const StepView step = cache.View(again.step);
      EXPECT_EQ(step.sequences[0].first_new.value(), n - block_tokens);
      EXPECT_EQ(step.sequences[0].new_tokens.value(), block_tokens);
      // The last block is a private one, not the cached one rewritten.
      EXPECT_EQ(cache.Refs(cache.Table(again.id).back()), 1u);
      EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), n) << "the chain was broken";
      cache.Retire(again.step);
      EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), n);
      cache.Free(again.id);
      EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), n);
      EXPECT_EQ(cache.F(), 64u);
    }
  }
}

TEST(CasesTest, B1_EveryLengthHitsAtMostAllButOneToken) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    CacheScript cache(64, block_tokens);
    cache.Free(cache.New(Text(1, 40)));
    for (uint32_t n = 1; n <= 48; ++n) {
      const uint32_t cached = 40 / block_tokens * block_tokens;
      EXPECT_EQ(cache.Hit(Text(1, n)),
                std::min((n - 1) / block_tokens * block_tokens, cached));
    }
  }
}

TEST(CasesTest, B3_ABlockBeingFilledIsNoHit) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    const uint32_t n = 2 * block_tokens;
    const std::vector<TokenId> prompt = Text(1, n);
    CacheScript cache(64, block_tokens);
    // Two of the same step, one of the next, while none is written.
    const StepId step =
        cache.Step({StepRequest::Admit(prompt), StepRequest::Admit(prompt)});
    for (const PlannedSequence& part : cache.View(step).sequences) {
      EXPECT_EQ(part.cached_tokens.value(), 0u);
    }
    EXPECT_EQ(cache.Hit(prompt), 0u);
    const Admission third = cache.NewUnwritten(prompt);
    EXPECT_EQ(third.cached_tokens.value(), 0u);
    cache.Retire(step);
    EXPECT_EQ(cache.Hit(prompt), n - block_tokens);
    EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), n);
    cache.Retire(third.step);
  }
}

TEST(CasesTest, B4_BlocksAreHitsOnceWrittenWhileTheirSequenceRuns) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    const uint32_t n = 2 * block_tokens;
    CacheScript cache(64, block_tokens);
    const SequenceId a = cache.New(Text(1, n));
    const SequenceId b = cache.New(Text(1, n) + Text(2, 3));
    EXPECT_EQ(cache->Describe(b)->cached_tokens.value(), n);
    const auto a_table = cache.Table(a);
    const auto b_table = cache.Table(b);
    for (uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a_table[i], b_table[i]);
      EXPECT_EQ(cache.Refs(a_table[i]), 2u);
    }
    cache.Free(a);
    for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(cache.Refs(b_table[i]), 1u);
    cache.Free(b);
    EXPECT_EQ(cache.F(), 64u);
  }
}

std::vector<CacheEvent> Drain(CacheScript* cache) {
  std::vector<CacheEvent> events(256);
  events.resize((*cache)->DrainEvents(absl::MakeSpan(events)));
  return events;
}

// The contents that the events of one kind name.
std::set<ContentDigest> Contents(const std::vector<CacheEvent>& events,
                                 CacheEvent::Kind kind) {
  std::set<ContentDigest> contents;
  for (const CacheEvent& event : events) {
    if (event.kind != kind) continue;
    EXPECT_TRUE(contents.insert(event.digest).second) << "told twice";
  }
  return contents;
}

// Several equal prompts in one step, then freed one by one, each time with
// everything evicted that can be.
void FillCopiesAndFreeThem(uint32_t copies, uint32_t block_tokens,
                           bool first_copy_first) {
  SCOPED_TRACE(absl::StrCat(copies, " copies, block ", block_tokens));
  const uint32_t n = 2 * block_tokens;
  KvCacheOptions options = PoolOptions(2 * copies, block_tokens);
  options.event_capacity = 256;
  CacheScript cache(options);
  const std::vector<TokenId> prompt = Text(1, n);
  const std::vector<StepRequest> requests(copies, StepRequest::Admit(prompt));
  const StepId step = cache.Step(requests);
  std::vector<SequenceId> ids;
  for (const PlannedSequence& part : cache.View(step).sequences) {
    ids.push_back(part.id);
  }
  cache.Retire(step);
  const std::set<ContentDigest> stored =
      Contents(Drain(&cache), CacheEvent::Kind::kStored);
  EXPECT_EQ(stored.size(), 2u) << "told for the first copy only";
  EXPECT_EQ(cache.Pool().slots.duplicate, (copies - 1) * n);
  EXPECT_EQ(cache.Pool().slots.live, n);

  if (!first_copy_first) std::reverse(ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool last = i + 1 == ids.size();
    cache.Free(ids[i]);
    EXPECT_EQ(cache.Pool().slots.duplicate, last ? 0u : (copies - 2 - i) * n);
    EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), n);
    // Evicts all that can be evicted.
    cache.Free(cache.New(
        Text(50 + static_cast<int32_t>(i), cache.F() * block_tokens)));
    EXPECT_EQ(cache.Hit(prompt + Text(2, 1)), last ? 0u : n);
    size_t removed = 0;
    for (const ContentDigest& digest :
         Contents(Drain(&cache), CacheEvent::Kind::kRemoved)) {
      removed += stored.count(digest);
    }
    EXPECT_EQ(removed, last ? 2u : 0u) << "told for the last copy only";
  }
}

TEST(CasesTest, B5_EqualPromptsAtOnceAreCopiesOfOneContent) {
  for (uint32_t copies : {2u, 3u, 5u}) {
    for (uint32_t block_tokens : {1u, 4u, 16u}) {
      FillCopiesAndFreeThem(copies, block_tokens, /*first_copy_first=*/true);
      FillCopiesAndFreeThem(copies, block_tokens, /*first_copy_first=*/false);
    }
  }
}

TEST(CasesTest, B7_EvictionTakesTheTailOfAChain) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t chain : {1u, 3u, 6u}) {
      for (uint32_t taken = 0; taken <= chain; ++taken) {
        SCOPED_TRACE(absl::StrCat(block_tokens, " ", chain, " ", taken));
        const std::vector<TokenId> prompt = Text(1, chain * block_tokens);
        CacheScript cache(chain, block_tokens);
        cache.Free(cache.New(prompt));
        EXPECT_EQ(cache.Pool().cached.value(), chain);
        if (taken != 0) cache.New(Text(2, taken * block_tokens));
        EXPECT_EQ(cache.Hit(prompt + Text(3, 1)),
                  (chain - taken) * block_tokens);
      }
    }
  }
}

TEST(CasesTest, B7_OfTwoChainsTheOneFreedFirstGoesFirst) {
  CacheScript cache(6, 4);
  const SequenceId a = cache.New(Text(1, 12));
  const SequenceId b = cache.New(Text(2, 12));
  cache.Free(b);
  cache.Free(a);
  cache.New(Text(3, 16));  // four blocks: all of b, the tail of a
  EXPECT_EQ(cache.Hit(Text(2, 13)), 0u);
  EXPECT_EQ(cache.Hit(Text(1, 13)), 8u);
}

TEST(CasesTest, B9_ARefusedAdmissionLeavesHitsAndTheirOrderAlone) {
  const uint32_t kBlock = 4;
  CacheScript cache(5, kBlock);
  cache.Free(cache.New(Text(1, 2 * kBlock)));  // two cached blocks of a
  cache.New(Text(2, 2 * kBlock));              // two held ones
  ASSERT_EQ(cache.F(), 3u);                    // one other is free
  const std::vector<TokenId> wish = Text(1, 2 * kBlock) + Text(3, 2 * kBlock);
  EXPECT_EQ(cache.Hit(wish), 2 * kBlock);
  // Two hits and two new blocks: the hits are on the eviction list
  // themselves, so one block is lacking.
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Allocate(wish); });
  EXPECT_EQ(cache.Hit(wish), 2 * kBlock);
  EXPECT_EQ(cache.Pool().cached.value(), 2u);
  // The order of eviction is the old one: free block, then a's tail.
  cache.New(Text(4, 2 * kBlock));
  EXPECT_EQ(cache.Hit(wish), kBlock);
}

TEST(CasesTest, B9_HitsAreNeverCountedAsRoomForTheirOwnRequest) {
  // pool = hits + others + spare; a wish of hits + new fits iff new <= spare.
  for (uint32_t hits : {1u, 2u, 5u}) {
    for (uint32_t spare : {0u, 1u, 3u}) {
      for (uint32_t fresh : {1u, 2u, 4u}) {
        SCOPED_TRACE(absl::StrCat(hits, " ", spare, " ", fresh));
        const uint32_t others = 4;
        CacheScript cache(hits + others + spare, 4);
        cache.Free(cache.New(Text(1, hits * 4)));
        cache.New(Text(2, others * 4));
        const std::vector<TokenId> wish =
            Text(1, hits * 4) + Text(3, fresh * 4);
        if (fresh > spare) {
          cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                              [&] { return cache->Allocate(wish); });
        } else {
          const Admission admission = cache.NewUnwritten(wish);
          EXPECT_EQ(admission.cached_tokens.value(), hits * 4);
          cache.Retire(admission.step);
        }
      }
    }
  }
}

TEST(CasesTest, B9_OneRefusedRequestRefusesTheWholePlan) {
  CacheScript cache(6, 4);
  cache.Free(cache.New(Text(1, 8)));
  const std::vector<TokenId> fits = Text(1, 8) + Text(2, 4);
  const std::vector<TokenId> does_not = Text(3, 16);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted, [&] {
    return cache->Plan(
        {StepRequest::Admit(fits), StepRequest::Admit(does_not)});
  });
  EXPECT_EQ(cache->Stats().hit_tokens, 0u);
  EXPECT_EQ(cache->Stats().prompt_tokens, 8u);
}

TEST(CasesTest, B18_ABlockThatAChunkLeftHalfFullIsNoHit) {
  for (uint32_t block_tokens : {4u, 16u, 32u}) {
    SCOPED_TRACE(block_tokens);
    const uint32_t chunk = block_tokens + block_tokens / 4;
    const std::vector<TokenId> prompt = Text(1, 2 * block_tokens + 8);
    CacheScript cache(64, block_tokens);
    StepRequest first = StepRequest::Admit(prompt);
    first.new_tokens = TokenCount(chunk);
    cache.Retire(cache.Step({first}));
    EXPECT_EQ(cache.Hit(prompt), block_tokens);
    const SequenceId id = cache->Sequences()[0];
    cache.Retire(cache.Step(
        {StepRequest::Extend(id, TokenCount(2 * block_tokens - chunk))}));
    EXPECT_EQ(cache.Hit(prompt), 2 * block_tokens);
  }
}

TEST(CasesTest, B18_ChunkingNeverChangesWhatIsCached) {
  const uint32_t kBlock = 4, kPrompt = 37;
  const std::vector<TokenId> prompt = Text(1, kPrompt);
  for (uint32_t chunk = 1; chunk <= kPrompt; ++chunk) {
    CacheScript cache(16, kBlock);
    StepRequest first = StepRequest::Admit(prompt);
    first.new_tokens = TokenCount(chunk);
    cache.Retire(cache.Step({first}));
    const SequenceId id = cache->Sequences()[0];
    for (uint32_t done = chunk; done < kPrompt;) {
      EXPECT_EQ(cache.Hit(prompt),
                std::min(done, kPrompt - 1) / kBlock * kBlock);
      const uint32_t next = std::min(chunk, kPrompt - done);
      cache.Retire(cache.Step({StepRequest::Extend(id, TokenCount(next))}));
      done += next;
    }
    EXPECT_EQ(cache.Tokens(id), prompt);
    EXPECT_EQ(cache.Hit(prompt), 36u) << "chunk " << chunk;
    EXPECT_EQ(cache.Held(), 10u);
    cache.Free(id);
    EXPECT_EQ(cache.Pool().cached.value(), 9u);
  }
}

TEST(CasesTest, B20_ClearingWhileBlocksAreInUseIsRefused) {
  CacheScript cache(8, 16);
  const Admission a = cache.NewUnwritten(Text(1, 16));
  const auto reset = [&] { return cache->Reset(); };
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, reset);
  cache.Retire(a.step);
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, reset);
  const auto pin = cache->Pin(Text(1, 17));
  ASSERT_TRUE(pin.ok()) << pin.status();
  cache.Free(a.id);
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition, reset);
  ASSERT_TRUE(cache->Unpin(*pin).ok());
  EXPECT_EQ(cache.Hit(Text(1, 17)), 16u);
  ASSERT_TRUE(cache->Reset().ok());
  cache.Check();
  EXPECT_EQ(cache.Hit(Text(1, 17)), 0u);
  EXPECT_EQ(cache.Pool().free.value(), 8u);
  // And the cache goes on working.
  cache.Free(cache.New(Text(1, 16)));
  EXPECT_EQ(cache.Hit(Text(1, 17)), 16u);
}

TEST(CasesTest, B20_ClearingWaitsForQuarantineToo) {
  CacheScript cache(8, 4);
  const Admission a = cache.NewUnwritten(Text(1, 8));
  cache.Free(a.id);
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Reset(); });
  cache.Retire(a.step);
  EXPECT_TRUE(cache->Reset().ok());
  EXPECT_EQ(cache.Pool().free.value(), 8u);
}

}  // namespace
}  // namespace paged_kv
