// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that other caches had with reference counts, fork and
// copy-on-write, each with its whole kind.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

struct A1Shape {
  uint32_t block_tokens, window, sinks, prompt, parent_append, child_append;
  bool child_first;
};

TEST(CasesTest, A1_ForkPastTheSlidingWindowFreesEachBlockOnce) {
  const A1Shape shapes[] = {
      {4, 8, 0, 12, 5, 5, false},   {4, 8, 0, 12, 5, 5, true},
      {4, 8, 4, 12, 5, 5, false},   {1, 3, 0, 9, 7, 2, true},
      {4, 5, 0, 13, 1, 11, false},  {8, 8, 1, 25, 16, 3, true},
      {16, 4, 0, 17, 40, 1, false}, {4, 8, 0, 3, 20, 20, true},
  };
  for (const A1Shape& s : shapes) {
    SCOPED_TRACE(absl::StrCat("block ", s.block_tokens, " window ", s.window,
                              " sinks ", s.sinks, " prompt ", s.prompt));
    CacheScript cache(PoolOptions(64, s.block_tokens, s.window, s.sinks));
    const SequenceId parent = cache.New(Text(1, s.prompt));
    const SequenceId child = cache.Fork(parent);
    cache.Append(parent, Text(2, s.parent_append));
    cache.Append(child, Text(3, s.child_append));
    EXPECT_EQ(cache.Length(parent), s.prompt + s.parent_append);
    EXPECT_EQ(cache.Length(child), s.prompt + s.child_append);
    cache.Free(s.child_first ? child : parent);
    cache.Free(s.child_first ? parent : child);
    EXPECT_EQ(cache.F(), 64u);
    EXPECT_EQ(cache.Held(), 0u);
  }
}

TEST(CasesTest, A1_TheCaseItselfFitsItsPoolOfEight) {
  CacheScript cache(PoolOptions(8, 4, 8));
  const SequenceId parent = cache.New(Text(1, 12));
  const SequenceId child = cache.Fork(parent);
  cache.Append(parent, Text(2, 5));
  cache.Append(child, Text(3, 5));
  cache.Free(parent);
  cache.Free(child);
  EXPECT_EQ(cache.F(), 8u);
}

TEST(CasesTest, A2_DifferentPromptsInOneBatchShareAndCopyNothing) {
  for (uint32_t block_tokens : {1u, 4u, 16u}) {
    for (uint32_t batch : {2u, 3u, 7u}) {
      CacheScript cache(128, block_tokens);
      std::vector<std::vector<TokenId>> prompts;
      std::vector<StepRequest> admits;
      for (uint32_t i = 0; i < batch; ++i) {
        prompts.push_back(Text(static_cast<int32_t>(i), 6));
      }
      for (const auto& prompt : prompts) {
        admits.push_back(StepRequest::Admit(prompt));
      }
      const StepId first = cache.Step(admits);
      EXPECT_TRUE(cache.View(first).copies.empty());
      cache.Retire(first);

      std::vector<StepRequest> extends;
      for (SequenceId id : cache->Sequences()) {
        extends.push_back(StepRequest::Extend(id, TokenCount(1)));
      }
      ASSERT_EQ(extends.size(), batch);
      const StepId second = cache.Step(extends);
      EXPECT_TRUE(cache.View(second).copies.empty());
      for (SequenceId id : cache->Sequences()) {
        for (BlockId block : cache.Table(id)) EXPECT_EQ(cache.Refs(block), 1u);
      }
      EXPECT_EQ(cache->Stats().blocks_copied, 0u);
      cache.Retire(second);
    }
  }
}

// Forks `children` of a prompt and lets all append one token of their own.
void ForkAndAppendOne(uint32_t block_tokens, uint32_t prompt, uint32_t children,
                      bool one_plan, bool parent_last) {
  SCOPED_TRACE(absl::StrCat("block ", block_tokens, " prompt ", prompt,
                            " children ", children, " one_plan ", one_plan));
  CacheScript cache(64, block_tokens);
  const SequenceId parent = cache.New(Text(1, prompt));
  std::vector<SequenceId> family = {parent};
  for (uint32_t i = 0; i < children; ++i) family.push_back(cache.Fork(parent));
  if (parent_last) std::reverse(family.begin(), family.end());
  const std::vector<BlockId> shared = cache.Table(parent);

  std::vector<std::vector<TokenId>> own;
  for (uint32_t i = 0; i < family.size(); ++i) {
    own.push_back(Text(static_cast<int32_t>(10 + i), 1));
  }
  uint64_t copies = 0;
  const auto count_copies = [&](StepId step) {
    for (const BlockCopy& copy : cache.View(step).copies) {
      ++copies;
      EXPECT_EQ(copy.source, shared.back());
      EXPECT_NE(copy.target, shared.back());
      EXPECT_EQ(copy.filled_tokens, prompt % block_tokens);
    }
  };
  if (one_plan) {
    std::vector<StepRequest> requests;
    for (uint32_t i = 0; i < family.size(); ++i) {
      requests.push_back(StepRequest::Extend(family[i], own[i]));
    }
    const StepId step = cache.Step(requests);
    count_copies(step);
    cache.Retire(step);
  } else {
    for (uint32_t i = 0; i < family.size(); ++i) {
      const StepId step = cache.AppendUnwritten(family[i], own[i]);
      count_copies(step);
      cache.Retire(step);
    }
  }
  // All but the last owner copy a partial tail; a full one is not written.
  const bool partial = prompt % block_tokens != 0;
  EXPECT_EQ(copies, partial ? children : 0u);
  EXPECT_EQ(cache->Stats().blocks_copied, copies);
  if (partial) {
    EXPECT_EQ(cache.Table(family.back()).back(), shared.back());
  }
  for (uint32_t i = 0; i < family.size(); ++i) {
    EXPECT_EQ(cache.Tokens(family[i]), Text(1, prompt) + own[i]);
    EXPECT_EQ(cache.Refs(cache.Table(family[i]).back()), 1u);
  }
}

TEST(CasesTest, A3_SiblingsKeepTheirOwnHistoryAndTheLastOwnerWritesInPlace) {
  ForkAndAppendOne(4, 6, 2, /*one_plan=*/false, /*parent_last=*/false);
  for (uint32_t block_tokens : {1u, 2u, 4u, 16u}) {
    for (uint32_t prompt : {1u, 3u, 4u, 6u, 15u, 16u, 17u}) {
      for (uint32_t children : {1u, 2u, 5u}) {
        for (bool one_plan : {false, true}) {
          ForkAndAppendOne(block_tokens, prompt, children, one_plan, false);
          ForkAndAppendOne(block_tokens, prompt, children, one_plan, true);
        }
      }
    }
  }
}

TEST(CasesTest, A3_AFreedSiblingNeedsNoCopy) {
  CacheScript cache(8, 4);
  const SequenceId parent = cache.New(Text(1, 6));
  const SequenceId child = cache.Fork(parent);
  const BlockId tail = cache.Table(parent).back();
  cache.Free(parent);
  const StepId step = cache.AppendUnwritten(child, Text(2, 1));
  EXPECT_TRUE(cache.View(step).copies.empty());
  EXPECT_EQ(cache.Table(child).back(), tail);
  cache.Retire(step);
}

TEST(CasesTest, A4_SharedPartialTailCountsTheCopiesItNeeds) {
  CacheScript cache(8, 4);
  std::vector<SequenceId> family = {cache.New(Text(1, 5))};
  EXPECT_EQ(cache.Held(), 2u);
  for (int i = 0; i < 4; ++i) family.push_back(cache.Fork(family[0]));
  EXPECT_EQ(cache.Held(), 2u);

  std::vector<StepRequest> one_each, three_each;
  for (SequenceId id : family) {
    one_each.push_back(StepRequest::Extend(id, TokenCount(1)));
    three_each.push_back(StepRequest::Extend(id, TokenCount(3)));
  }
  const StepId step = cache.Step(one_each);
  EXPECT_EQ(cache.View(step).copies.size(), 4u);
  cache.Retire(step);
  EXPECT_EQ(cache.Held(), 6u);
  EXPECT_EQ(cache.F(), 2u);

  // 6 tokens and 3 more are a third block for each of the five: 2 are left.
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Plan(three_each); });
  EXPECT_EQ(cache.Held(), 6u);
}

TEST(CasesTest, A4_CopiesAreCountedForAnyFamilyAndBlockSize) {
  for (uint32_t block_tokens : {2u, 4u, 16u, 32u}) {
    for (uint32_t family_size : {2u, 3u, 9u}) {
      // Exactly enough for the copies, then one block too few.
      for (uint32_t lacking : {0u, 1u}) {
        SCOPED_TRACE(
            absl::StrCat(block_tokens, " ", family_size, " ", lacking));
        const uint32_t blocks = 2 + family_size - 1 - lacking;
        CacheScript cache(blocks, block_tokens);
        std::vector<SequenceId> family = {cache.New(Text(1, block_tokens + 1))};
        while (family.size() < family_size) {
          family.push_back(cache.Fork(family[0]));
        }
        std::vector<StepRequest> requests;
        for (SequenceId id : family) {
          requests.push_back(StepRequest::Extend(id, TokenCount(1)));
        }
        if (lacking != 0) {
          cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                              [&] { return cache->Plan(requests); });
          continue;
        }
        cache.Retire(cache.Step(requests));
        EXPECT_EQ(cache.Held(), blocks);
        EXPECT_EQ(cache.F(), 0u);
      }
    }
  }
}

TEST(CasesTest, A6_ForkWithoutBlocksIsRefusedAtTheFirstWriteAndChangesNothing) {
  for (uint32_t block_tokens : {2u, 4u, 16u}) {
    SCOPED_TRACE(block_tokens);
    CacheScript cache(4, block_tokens);
    const SequenceId parent = cache.New(Text(1, 4 * block_tokens - 1));
    EXPECT_EQ(cache.F(), 0u);
    const SequenceId child = cache.Fork(parent);  // takes no block
    cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                        [&] { return cache->Append(child, Text(2, 1)); });
    cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                        [&] { return cache->Append(parent, Text(2, 1)); });
    // Nothing is lost: once one of the two has gone, the other goes on.
    cache.Free(parent);
    cache.Append(child, Text(2, 1));
    EXPECT_EQ(cache.Tokens(child), Text(1, 4 * block_tokens - 1) + Text(2, 1));
  }
}

TEST(CasesTest, A6_ForksBeyondTheSequenceLimitAreRefused) {
  KvCacheOptions options = PoolOptions(4, 4);
  options.max_sequences = 3;
  CacheScript cache(options);
  const SequenceId parent = cache.New(Text(1, 6));
  cache.Fork(parent);
  cache.Fork(parent);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Fork(parent); });
}

TEST(CasesTest, A10_OneSlotFreedByTwoPathsIsFreedOnce) {
  for (uint32_t block_tokens : {1u, 4u, 16u, 32u}) {
    for (uint32_t outputs : {0u, 1u, 63u, 200u}) {
      SCOPED_TRACE(absl::StrCat(block_tokens, " ", outputs));
      CacheScript cache(256, block_tokens);
      const SequenceId id = cache.New(Text(1, 1));
      for (uint32_t i = 0; i < outputs; ++i) {
        cache.Append(id, Text(2, 1, i));
      }
      EXPECT_EQ(cache.Held(), CeilDiv(1 + outputs, block_tokens));
      cache.Free(id);
      cache.ExpectRefused(absl::StatusCode::kNotFound,
                          [&] { return cache->Free(id); });
      // A sequence that took the freed one's place is not hit by its id.
      const SequenceId other = cache.New(Text(3, 1));
      cache.ExpectRefused(absl::StatusCode::kNotFound,
                          [&] { return cache->Free(id); });
      cache.Free(other);
      EXPECT_EQ(cache.F(), 256u);
      EXPECT_EQ(cache.Held(), 0u);
      EXPECT_EQ(cache.Pool().free + cache.Pool().cached, BlockCount(256));
    }
  }
}

}  // namespace
}  // namespace paged_kv
