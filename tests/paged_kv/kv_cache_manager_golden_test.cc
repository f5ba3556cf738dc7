// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers and names from the tests of public caches: what they count, this
// cache counts too. Sources: vLLM tests/v1/core/test_prefix_caching.py
// (commit 003df296), openvino.genai tests/cpp/block_manager.cpp (da1db864) and
// its prefix-caching tests. Orders in which blocks are given out are policies
// there and are not compared; what is evicted first is.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

// vLLM keeps block 0 of its 11 as a null block: 10 are left.
TEST(GoldenTest, VllmPrefill) {
  CacheScript cache(10, 16);
  const std::vector<TokenId> common = Text(1, 48);

  const Admission first = cache.NewUnwritten(common + Text(2, 7));
  EXPECT_EQ(first.cached_tokens.value(), 0u);
  EXPECT_EQ(cache.Table(first.id).size(), 4u);
  cache.Retire(first.step);
  const std::vector<BlockId> chain = cache.Table(first.id);

  const Admission second = cache.NewUnwritten(common + Text(3, 5));
  EXPECT_EQ(second.cached_tokens.value(), 48u);
  EXPECT_EQ(cache.View(second.step).new_blocks.size(), 1u);
  EXPECT_EQ(cache.Pool().free.value(), 5u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.Table(second.id)[i], chain[i]);
    EXPECT_EQ(cache.Refs(chain[i]), 2u);
  }
  cache.Retire(second.step);

  cache.Free(first.id);
  cache.Free(second.id);
  EXPECT_EQ(cache.F(), 10u);
  EXPECT_EQ(cache.Pool().cached.value(), 3u);

  const Admission third = cache.NewUnwritten(common + Text(4, 6));
  EXPECT_EQ(third.cached_tokens.value(), 48u);
  EXPECT_EQ(cache.F(), 6u);
  cache.Retire(third.step);
  cache.Free(third.id);
  EXPECT_EQ(cache.F(), 10u);

  // 160 tokens: the blocks without content first, then the chain, tail first.
  const Admission last = cache.NewUnwritten(Text(5, 160));
  EXPECT_EQ(last.cached_tokens.value(), 0u);
  EXPECT_EQ(cache.F(), 0u);
  const std::vector<BlockId> table = cache.Table(last.id);
  ASSERT_EQ(table.size(), 10u);
  EXPECT_EQ(table[7], chain[2]);
  EXPECT_EQ(table[8], chain[1]);
  EXPECT_EQ(table[9], chain[0]);
  cache.Retire(last.step);
}

TEST(GoldenTest, OpenvinoGeneral) {
  CacheScript cache(6, 4);
  const SequenceId id = cache.New(Text(1, 24));
  EXPECT_EQ(cache.Table(id).size(), 6u);
  EXPECT_EQ(cache.F(), 0u);
  cache.Truncate(id, 8);  // the last four blocks
  EXPECT_EQ(cache.Table(id).size(), 2u);
  EXPECT_EQ(cache.F(), 4u);
  cache.Free(id);
  EXPECT_EQ(cache.F(), 6u);
  const SequenceId parent = cache.New(Text(2, 8));
  const SequenceId child = cache.Fork(parent);
  EXPECT_EQ(cache.Refs(cache.Table(parent).back()), 2u);
  EXPECT_EQ(cache.Table(parent), cache.Table(child));
}

TEST(GoldenTest, OpenvinoRequiredBlocksCount) {
  CacheScript cache(8, 4);
  std::vector<SequenceId> family = {cache.New(Text(1, 5))};
  EXPECT_EQ(cache.Held(), 2u);
  while (family.size() < 5) family.push_back(cache.Fork(family[0]));
  EXPECT_EQ(cache.Held(), 2u);
  std::vector<StepRequest> requests;
  for (SequenceId id : family) {
    requests.push_back(StepRequest::Extend(id, TokenCount(1)));
  }
  auto plan = cache->Plan(requests);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->view().new_blocks.size() + plan->view().copies.size(), 4u);
  cache.Retire(*cache->Commit(*std::move(plan)));
  EXPECT_EQ(cache.Held(), 6u);
  EXPECT_EQ(cache.F(), 2u);
}

uint64_t OneHashForAll(uint64_t, const void*, size_t) { return 0; }

TEST(GoldenTest, HandlesHashCollisionsAtFreeCorrectly) {
  KvCacheOptions options = PoolOptions(6, 4);
  options.hash = &OneHashForAll;
  CacheScript cache(options);
  std::vector<SequenceId> ids;
  for (int32_t text = 0; text < 3; ++text)
    ids.push_back(cache.New(Text(text, 8)));
  for (SequenceId id : ids) cache.Free(id);
  EXPECT_EQ(cache.Pool().cached.value(), 6u);
  cache.Free(cache.New(Text(9, 8)));  // evicts the two of text 0
  EXPECT_EQ(cache.Hit(Text(0, 9)), 0u);
  for (int32_t text : {1, 2, 9}) EXPECT_EQ(cache.Hit(Text(text, 9)), 8u);
}

TEST(GoldenTest, AllocatesFromOverwriteableBlocksWhenFreePoolIsExhausted) {
  CacheScript cache(6, 4);
  cache.Free(cache.New(Text(1, 12)));
  EXPECT_EQ(cache.Pool().free.value(), 3u);
  EXPECT_EQ(cache.Pool().cached.value(), 3u);
  const SequenceId id = cache.New(Text(2, 20));
  EXPECT_EQ(cache.Table(id).size(), 5u);
  EXPECT_EQ(cache->Stats().blocks_evicted, 2u);
  EXPECT_EQ(cache.Hit(Text(1, 13)), 4u);
}

TEST(GoldenTest, PrefixRestoreStalePlanReturnsFalseWithoutRestoring) {
  CacheScript cache(6, 4);
  cache.Free(cache.New(Text(1, 12)));
  const std::vector<TokenId> prompt = Text(1, 13);
  auto plan = cache->Plan({StepRequest::Admit(prompt)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->view().sequences[0].cached_tokens.value(), 12u);
  // Another request takes what the plan found.
  const SequenceId other = cache.New(Text(2, 24));
  cache.ExpectRefused(absl::StatusCode::kAborted,
                      [&] { return cache->Commit(*std::move(plan)); });
  EXPECT_EQ(cache->Sequences(), std::vector<SequenceId>{other});
}

TEST(GoldenTest, PrefixCachingTwoIdenticalSequences) {
  CacheScript cache(32, 4);
  const std::vector<TokenId> prompt = Text(1, 22);
  const SequenceId a = cache.New(prompt);
  const SequenceId b = cache.New(prompt);
  EXPECT_EQ(cache->Describe(b)->cached_tokens.value(), 20u);
  cache.Append(a, Text(2, 6));
  cache.Append(b, Text(2, 6));
  EXPECT_EQ(cache.Tokens(a), cache.Tokens(b));
  // Both filled block 5 with the same tokens; one of the two is a duplicate.
  EXPECT_EQ(cache.Pool().slots.duplicate, 8u);
  cache.Free(a);
  cache.Free(b);
  EXPECT_EQ(cache.Pool().cached.value(), 7u);
}

TEST(GoldenTest, PrefixCachingWithMaxNewTokensEqual1) {
  // The one new token comes from the prompt's own step: it never has K/V.
  CacheScript cache(8, 4);
  for (int i = 0; i < 3; ++i) {
    const Admission admission = cache.NewUnwritten(Text(1, 8));
    EXPECT_EQ(admission.cached_tokens.value(), i == 0 ? 0u : 4u);
    cache.Retire(admission.step);
    cache.Free(admission.id);
    EXPECT_EQ(cache.Pool().cached.value(), 2u);
    EXPECT_EQ(cache.F(), 8u);
  }
}

TEST(GoldenTest, PartialPreemptionKeepsThePrefixOfABeam) {
  // A beam of two over a shared prompt: cutting the tails back frees them
  // only, and the prompt is found again.
  CacheScript cache(16, 4);
  const SequenceId parent = cache.New(Text(1, 10));
  const SequenceId beam = cache.Fork(parent);
  cache.Append(parent, Text(2, 9));
  cache.Append(beam, Text(3, 9));
  EXPECT_EQ(cache.Held(), 8u);  // 2 shared, 3 each
  cache.Truncate(parent, 8);
  cache.Truncate(beam, 8);
  EXPECT_EQ(cache.Held(), 2u);
  EXPECT_EQ(cache.Table(parent), cache.Table(beam));
  EXPECT_EQ(cache.Hit(Text(1, 10)), 8u);
}

}  // namespace
}  // namespace paged_kv
