// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the model, or a user, once found wrong. Each by the shortest way there.

#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

TEST(KvCacheManagerRegressionTest, DraftsWithoutANewTokenWaitForTheirStepToo) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 4));
  StepRequest drafts = StepRequest::Extend(id, TokenCount(0));
  drafts.lookahead = TokenCount(3);
  const StepId step = cache.Step({drafts});
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Accept(id, Text(2, 2)); });
  EXPECT_EQ(cache.Hit(Text(1, 4) + Text(2, 3)), 4u);
  cache.Retire(step);
  ASSERT_TRUE(cache->Accept(id, Text(2, 2)).ok());
  EXPECT_EQ(cache.Tokens(id), Text(1, 4) + Text(2, 2));
}

TEST(KvCacheManagerRegressionTest, ASecondCutKeepsWhatALaterStepWrites) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 8));
  const StepId first = cache.AppendUnwritten(id, Text(2, 2));
  cache.Truncate(id, 8);
  const StepId second = cache.AppendUnwritten(id, Text(3, 4));
  cache.Truncate(id, 10);
  cache.Retire(first);
  EXPECT_EQ(cache->Describe(id)->written.value(), 8u);
  cache.Retire(second);
  // The second step wrote tokens 8 and 9, and they were kept.
  EXPECT_EQ(cache->Describe(id)->written.value(), 10u);
  cache.Fork(id);
}

TEST(KvCacheManagerRegressionTest, ACutInsideTheSinksNeedsNoReleasedBlock) {
  CacheScript cache(PoolOptions(16, 4, /*window=*/8, /*sinks=*/8));
  const SequenceId id = cache.New(Text(1, 24));
  ASSERT_EQ(cache.Table(id)[2], kNoBlock);
  // Token 12 would attend to block 2.
  cache.ExpectRefused(absl::StatusCode::kFailedPrecondition,
                      [&] { return cache->Truncate(id, TokenCount(12)); });
  // Token 8 attends to tokens 1 to 8: blocks 0 and 1 are sinks.
  cache.Truncate(id, 8);
  cache.Append(id, Text(2, 13));
  EXPECT_EQ(cache.Tokens(id), Text(1, 8) + Text(2, 13));
}

TEST(KvCacheManagerRegressionTest, AnAdmissionDoesNotHitWhatItsStepOverwrites) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 8));
  cache.Truncate(id, 6);  // block 1 is still shareable
  EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  const std::vector<TokenId> next = Text(2, 1), prompt = Text(1, 9);
  // Extended first, the block is written in place: no hit for the admission.
  auto plan =
      cache->Plan({StepRequest::Extend(id, next), StepRequest::Admit(prompt)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->view().copies.size(), 0u);
  EXPECT_EQ(plan->view().sequences[1].cached_tokens.value(), 4u);
  // Admitted first, the block is shared by then: the extension copies it.
  const StepId step =
      cache.Step({StepRequest::Admit(prompt), StepRequest::Extend(id, next)});
  const StepView view = cache.View(step);
  EXPECT_EQ(view.sequences[0].cached_tokens.value(), 8u);
  EXPECT_EQ(view.copies.size(), 1u);
  cache.Retire(step);
  EXPECT_EQ(cache.Tokens(id), Text(1, 6) + next);
}

TEST(KvCacheManagerRegressionTest, NeverFitsOutranksNotNowOfAnotherPool) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.groups.push_back(options.groups[0]);
  options.groups[1].shape.block_tokens = 2;  // 8 blocks of 2: 16 tokens
  CacheScript cache(options);
  cache.New(Text(1, 12));
  // Six blocks of 4 are not free now; twelve of 2 never are.
  cache.ExpectRefused(absl::StatusCode::kOutOfRange,
                      [&] { return cache->Allocate(Text(2, 24)); });
}

TEST(KvCacheManagerRegressionTest, ATableWhoseBlocksAreAllReleasedHasALength) {
  CacheScript cache(PoolOptions(8, 3, /*window=*/1));
  const SequenceId id = cache.New(Text(1, 6));
  EXPECT_EQ(cache.Held(), 0u);
  std::vector<int32_t> indptr(2), last(1), first(1);
  const auto table = cache->ExportPageTable({&id, 1}, GroupId(0),
                                            {absl::MakeSpan(indptr),
                                             {},
                                             absl::MakeSpan(last),
                                             absl::MakeSpan(first)});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->page_indices.size(), 0u);
  EXPECT_EQ(table->last_page_tokens[0], 0);
  EXPECT_EQ(table->SequenceTokens(0), 6);
}

// Block tables of 2^32 entries and more per sequence: only address space, for
// they are backed where they are touched.
TEST(KvCacheManagerRegressionTest, HugeTablesOfManyGroupsDoNotOverlap) {
  KvCacheOptions options;
  for (uint32_t i = 1; i <= 5; ++i) {
    LayerGroup group;
    group.shape.block_tokens = 1;
    group.shape.head_dim = 8 * i;
    options.groups.push_back(group);
  }
  options.host_blocks = BlockCount(16);
  options.max_sequences = 1;
  options.max_pins = 0;
  options.max_tokens_per_sequence = 1u << 30;
  auto cache = KvCacheManager::Create(options);
  if (absl::IsResourceExhausted(cache.status())) {
    GTEST_SKIP() << cache.status();
  }
  ASSERT_TRUE(cache.ok()) << cache.status();
  const auto admission = (*cache)->Allocate(Text(1, 8));
  ASSERT_TRUE(admission.ok()) << admission.status();
  EXPECT_TRUE((*cache)->CheckInvariants().ok()) << (*cache)->CheckInvariants();
  ASSERT_TRUE((*cache)->Retire(admission->step).ok());
  ASSERT_TRUE((*cache)->Truncate(admission->id, TokenCount(4)).ok());
  EXPECT_TRUE((*cache)->CheckInvariants().ok()) << (*cache)->CheckInvariants();
  ASSERT_TRUE((*cache)->Free(admission->id).ok());
  EXPECT_EQ((*cache)->Stats().pools[4].held, BlockCount(0));
}

}  // namespace
}  // namespace paged_kv
