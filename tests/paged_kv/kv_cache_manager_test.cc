// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of kv_cache_manager.h and step.h, call by call.

#include "paged_kv/kv_cache_manager.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

// ---- Steps in flight ----

TEST(KvCacheManagerTest, ValuesMayComeAfterTheStep) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 4));
  const StepId first = cache.Step({StepRequest::Extend(id, TokenCount(2))});
  const StepId second = cache.Step({StepRequest::Extend(id, TokenCount(2))});
  const SequenceInfo info = *cache->Describe(id);
  EXPECT_EQ(info.tokens, TokenCount(8));
  EXPECT_EQ(info.written, TokenCount(4));
  EXPECT_EQ(info.known, TokenCount(4));
  cache.ExpectRefused(
      kInvalid, [&] { return cache->SetTokens(id, TokenPos(5), Text(2, 1)); });
  cache.Retire(first);
  ASSERT_TRUE(cache->SetTokens(id, TokenPos(4), Text(2, 3)).ok());
  EXPECT_EQ(cache.Tokens(id), Text(1, 4) + Text(2, 3));
  cache.Retire(second);
  // Written, but the last value is not known yet.
  EXPECT_EQ(cache.Hit(Text(1, 4) + Text(2, 5)), 4u);
  ASSERT_TRUE(cache->SetTokens(id, TokenPos(7), Text(2, 1, 3)).ok());
  EXPECT_EQ(cache.Hit(Text(1, 4) + Text(2, 5)), 8u);
  cache.ExpectRefused(kNotFound, [&] {
    return cache->SetTokens(SequenceId(77), TokenPos(0), {});
  });
  cache.ExpectRefused(kOutOfRange, [&] {
    return cache->SetTokens(id, TokenPos(8), Text(2, 4096));
  });
}

TEST(KvCacheManagerTest, LayersAreMarkedInAnyNumberUntilTheStepRetires) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.groups[0].shape.layers = 3;
  options.groups.push_back(options.groups[0]);
  options.groups[1].shape.layers = 2;
  CacheScript cache(options);
  const Admission a = cache.NewUnwritten(Text(1, 4));
  EXPECT_EQ(*cache->LayersWritten(a.step), 0u);
  ASSERT_TRUE(cache->MarkWritten(a.step, 1).ok());
  EXPECT_EQ(*cache->LayersWritten(a.step), 2u);
  ASSERT_TRUE(cache->MarkWritten(a.step, 0).ok());  // never back
  EXPECT_EQ(*cache->LayersWritten(a.step), 2u);
  ASSERT_TRUE(cache->MarkWritten(a.step, 4).ok());
  EXPECT_EQ(*cache->LayersWritten(a.step), 5u);
  EXPECT_EQ(cache->MarkWritten(a.step, 5).code(), kInvalid);
  EXPECT_EQ(cache->MarkWritten(StepId(9), 0).code(), kNotFound);
  EXPECT_EQ(cache.Hit(Text(1, 5)), 0u) << "shared only when the step retires";
  cache.Retire(a.step);
  EXPECT_EQ(cache->MarkWritten(a.step, 0).code(), kNotFound);
  EXPECT_EQ(cache->LayersWritten(a.step).status().code(), kNotFound);
  EXPECT_EQ(cache->LayersWritten(StepId(0)).status().code(), kNotFound);
}

TEST(KvCacheManagerTest, StepsAreNumberedFromOneInOrder) {
  CacheScript cache(8, 4);
  const Admission a = cache.NewUnwritten(Text(1, 4));
  EXPECT_EQ(a.step, StepId(1));
  EXPECT_EQ(cache.AppendUnwritten(a.id, Text(2, 1)), StepId(2));
  cache.Retire(StepId(1));
  EXPECT_EQ(cache.AppendUnwritten(a.id, Text(2, 1)), StepId(3));
  const CacheStats stats = cache->Stats();
  EXPECT_EQ(stats.steps_committed, 3u);
  EXPECT_EQ(stats.steps_retired, 1u);
  EXPECT_EQ(stats.steps_in_flight, 2u);
}

// ---- Sequences ----

TEST(KvCacheManagerTest, ForkNeedsWrittenTokensAndNoDrafts) {
  CacheScript cache(8, 4);
  const Admission a = cache.NewUnwritten(Text(1, 5));
  const auto fork = [&] { return cache->Fork(a.id); };
  cache.ExpectRefused(kPrecondition, fork);
  cache.Retire(a.step);
  StepRequest drafts = StepRequest::Extend(a.id, TokenCount(0));
  drafts.lookahead = TokenCount(2);
  cache.Retire(cache.Step({drafts}));
  cache.ExpectRefused(kPrecondition, fork);
  ASSERT_TRUE(cache->Accept(a.id, {}).ok());
  const SequenceId child = cache.Fork(a.id);
  EXPECT_NE(child, a.id);
  EXPECT_EQ(cache.Table(child), cache.Table(a.id));
  EXPECT_EQ(cache.Tokens(child), cache.Tokens(a.id));
  EXPECT_EQ(cache->Stats().blocks_taken, 2u);
  cache.ExpectRefused(kNotFound, [&] { return cache->Fork(SequenceId(99)); });
}

TEST(KvCacheManagerTest, AForkOfHalfAPromptKnowsTheRest) {
  CacheScript cache(16, 4);
  const std::vector<TokenId> prompt = Text(1, 11);
  StepRequest chunk = StepRequest::Admit(prompt);
  chunk.new_tokens = TokenCount(6);
  cache.Retire(cache.Step({chunk}));
  const SequenceId parent = cache->Sequences()[0];
  const SequenceId child = cache.Fork(parent);
  EXPECT_EQ(cache.Tokens(child), prompt);
  EXPECT_EQ(cache.Length(child), 6u);
  cache.Retire(cache.Step({StepRequest::Extend(child, TokenCount(5)),
                           StepRequest::Extend(parent, TokenCount(5))}));
  EXPECT_EQ(cache->Stats().blocks_copied, 1u);
  EXPECT_EQ(cache.Pool().slots.duplicate, 4u) << "block 1 was filled twice";
}

TEST(KvCacheManagerTest, AcceptTakesAPrefixOfTheDrafts) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 3));
  StepRequest request = StepRequest::Extend(id, TokenCount(1));
  request.lookahead = TokenCount(2);
  cache.Retire(cache.Step({request}));
  cache.ExpectRefused(kInvalid, [&] { return cache->Accept(id, Text(2, 3)); });
  // The value of the token before the drafts is still unknown.
  cache.ExpectRefused(kPrecondition,
                      [&] { return cache->Accept(id, Text(2, 1)); });
  ASSERT_TRUE(cache->SetTokens(id, TokenPos(3), Text(2, 1)).ok());
  ASSERT_TRUE(cache->Accept(id, Text(2, 1, 1)).ok());
  EXPECT_EQ(cache.Tokens(id), Text(1, 3) + Text(2, 2));
  // The drafts are gone, accepted or not.
  cache.ExpectRefused(kInvalid, [&] { return cache->Accept(id, Text(2, 1)); });
  cache.ExpectRefused(kNotFound,
                      [&] { return cache->Accept(SequenceId(5), {}); });
}

TEST(KvCacheManagerTest, TheNextStepDropsWhatWasNotAccepted) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 4));
  const std::vector<TokenId> token = Text(2, 1);
  StepRequest request = StepRequest::Extend(id, token);
  request.lookahead = TokenCount(5);
  cache.Retire(cache.Step({request}));
  EXPECT_EQ(cache.Pool().slots.lookahead, 5u);
  cache.Append(id, Text(3, 1));
  EXPECT_EQ(cache.Length(id), 6u);
  EXPECT_EQ(cache->Describe(id)->lookahead, TokenCount(0));
  EXPECT_EQ(cache.Pool().slots.lookahead, 0u);
  EXPECT_EQ(cache.Pool().slots.tail, 2u);
  EXPECT_EQ(cache.Pool().slots.reserved, 4u) << "the block stays held";
}

TEST(KvCacheManagerTest, TruncateKnowsItsLimits) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 9));
  cache.ExpectRefused(kInvalid,
                      [&] { return cache->Truncate(id, TokenCount(10)); });
  cache.ExpectRefused(
      kNotFound, [&] { return cache->Truncate(SequenceId(9), TokenCount(0)); });
  cache.Truncate(id, 9);
  cache.Truncate(id, 0);
  EXPECT_EQ(cache.Held(), 0u);
  EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  cache.Append(id, Text(2, 3));
  EXPECT_EQ(cache.Tokens(id), Text(2, 3));
}

TEST(KvCacheManagerTest, ACutBlockStaysShareableUntilItIsOverwritten) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 8));
  const BlockId tail = cache.Table(id)[1];
  cache.Truncate(id, 6);
  EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  const StepId step = cache.AppendUnwritten(id, Text(2, 1));
  EXPECT_EQ(cache.Table(id)[1], tail) << "its only owner writes in place";
  EXPECT_EQ(cache.Hit(Text(1, 9)), 4u);
  cache.Retire(step);
}

TEST(KvCacheManagerTest, StaleIdsAreNotFoundNotStrangers) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.max_sequences = 1;
  CacheScript cache(options);
  const SequenceId first = cache.New(Text(1, 4));
  cache.Free(first);
  const SequenceId second = cache.New(Text(2, 4));
  EXPECT_NE(first, second);
  EXPECT_EQ(cache->Describe(first).status().code(), kNotFound);
  EXPECT_EQ(cache->Tokens(first).status().code(), kNotFound);
  EXPECT_EQ(cache->BlockTable(first, GroupId(0)).status().code(), kNotFound);
  EXPECT_EQ(cache->BlockTable(second, GroupId(1)).status().code(), kInvalid);
  EXPECT_EQ(cache->Describe(SequenceId(~uint64_t{0})).status().code(),
            kNotFound);
  EXPECT_EQ(cache->Sequences(), std::vector<SequenceId>{second});
}

// ---- Pins ----

TEST(KvCacheManagerTest, PinsKeepContentFromEviction) {
  CacheScript cache(4, 4);
  cache.Free(cache.New(Text(1, 8)));
  const auto pin = cache->Pin(Text(1, 9));
  ASSERT_TRUE(pin.ok()) << pin.status();
  EXPECT_EQ(cache.F(), 2u);
  EXPECT_EQ(cache.Pool().slots.live, 8u) << "pinned slots count as live";
  EXPECT_EQ(cache->Stats().pins, 1u);
  EXPECT_TRUE(cache->Sequences().empty());
  cache.Free(cache.New(Text(2, 8)));
  EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  // A pin is no sequence and a sequence no pin.
  EXPECT_EQ(cache->Free(SequenceId(pin->value())).code(), kNotFound);
  const SequenceId id = cache.New(Text(3, 1));
  EXPECT_EQ(cache->Unpin(PinId(id.value())).code(), kNotFound);
  cache->FreeAll();
  EXPECT_EQ(cache->Stats().pins, 1u);
  ASSERT_TRUE(cache->Unpin(*pin).ok());
  EXPECT_EQ(cache->Unpin(*pin).code(), kNotFound);
  EXPECT_EQ(cache.F(), 4u);
  cache.New(Text(4, 16));
  EXPECT_EQ(cache.Hit(Text(1, 9)), 0u);
}

TEST(KvCacheManagerTest, PinsAreBoundedAndNeedContent) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.max_pins = 2;
  CacheScript cache(options);
  cache.New(Text(1, 8));
  EXPECT_EQ(cache->Pin(Text(2, 8)).status().code(), kNotFound);
  EXPECT_EQ(cache->Pin({}).status().code(), kNotFound);
  EXPECT_EQ(cache->Pin(Text(1, 4)).status().code(), kNotFound)
      << "one token is always left over";
  ASSERT_TRUE(cache->Pin(Text(1, 8)).ok());
  ASSERT_TRUE(cache->Pin(Text(1, 8)).ok());
  EXPECT_EQ(cache->Pin(Text(1, 8)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cache.Refs(cache.Table(cache->Sequences()[0])[0]), 3u);
}

// ---- Inspection ----

TEST(KvCacheManagerTest, LookupTakesNothingAndTouchesNoOrder) {
  CacheScript cache(4, 4);
  cache.Free(cache.New(Text(1, 8)));
  cache.Free(cache.New(Text(2, 8)));
  const uint64_t before = cache->Fingerprint();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.Hit(Text(1, 9)), 8u);
  EXPECT_EQ(cache->Fingerprint(), before);
  cache.New(Text(3, 8));  // evicts text 1, the older, all the same
  EXPECT_EQ(cache.Hit(Text(1, 9)), 0u);
  EXPECT_EQ(cache.Hit(Text(2, 9)), 8u);
  EXPECT_EQ(cache->Lookup({})->hit_tokens, TokenCount(0));
  const KeyExtra beyond = Content(TokenPos(9), "x");
  EXPECT_EQ(cache->Lookup(Text(1, 9), {&beyond, 1}).status().code(), kInvalid);
  EXPECT_EQ(cache->Lookup(Text(1, 100000))->hit_tokens, TokenCount(0));
}

TEST(KvCacheManagerTest, CountersCountWhatHappened) {
  CacheScript cache(4, 4);
  cache.Free(cache.New(Text(1, 8)));
  const SequenceId id = cache.New(Text(1, 9));
  cache.Fork(id);
  cache.Append(id, Text(2, 1));
  const CacheStats stats = cache->Stats();
  EXPECT_EQ(stats.sequences, 2u);
  EXPECT_EQ(stats.sequences_admitted, 2u);
  EXPECT_EQ(stats.prompt_tokens, 17u);
  EXPECT_EQ(stats.hit_tokens, 8u);
  EXPECT_EQ(stats.blocks_taken, 4u);
  EXPECT_EQ(stats.blocks_copied, 1u);
  EXPECT_EQ(stats.blocks_evicted, 0u);
  EXPECT_EQ(stats.unshared_chunks, 0u);
  EXPECT_EQ(stats.pools[0].capacity, BlockCount(4));
  EXPECT_EQ(cache.Refs(BlockId(4)), 0u);
  EXPECT_EQ(cache->RefCount(GroupId(7), BlockId(0)), 0u);
  EXPECT_GT(cache->MetadataBytesPerBlock(), 0);
  EXPECT_LE(cache->MetadataBytesPerBlock(), 64);
}

TEST(KvCacheManagerTest, ThePeakIsWhatWasUsedAtOnce) {
  CacheScript cache(8, 4);
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(0));
  const SequenceId id = cache.New(Text(1, 12));
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(3));
  // Kept for later prompts, a block is still used.
  cache.Free(id);
  const SequenceId fork = cache.Fork(cache.New(Text(2, 6)));
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(5));
  // Of 6 and 7 tokens with a beginning in common, one block is the fork's own,
  // which nothing keeps when it is cut off and freed.
  cache.Append(fork, Text(3, 1));
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(6));
  cache.Truncate(fork, 4);
  cache.Free(fork);
  EXPECT_EQ(cache.Held(), 2u);
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(6));
  // Never more than there are, whatever had to go.
  cache.New(Text(4, 24));
  EXPECT_EQ(cache.Pool().peak_used, BlockCount(8));
}

TEST(KvCacheManagerTest, APrefixWithoutRoomForItsExtrasIsNotShared) {
  KvCacheOptions options = PoolOptions(16, 4);
  options.index_extra_bytes = 64;  // one cell of 56 bytes
  CacheScript cache(options);
  const std::vector<KeyExtra> a = {Salt("a")}, b = {Salt("b")};
  const SequenceId first = cache.New(Text(1, 8), a);
  EXPECT_EQ(cache->Stats().unshared_chunks, 0u);
  const SequenceId second = cache.New(Text(1, 8), b);
  EXPECT_EQ(cache->Stats().unshared_chunks, 1u);
  EXPECT_EQ(cache.Hit(Text(1, 9), a), 8u);
  EXPECT_EQ(cache.Hit(Text(1, 9), b), 0u);
  cache.New(Text(2, 8));  // without extras there is room
  EXPECT_EQ(cache.Hit(Text(2, 9)), 8u);
  // The room comes back with the content.
  cache.Free(first);
  cache.Free(second);
  cache.New(Text(3, 56));
  EXPECT_EQ(cache.Hit(Text(1, 9), a), 0u);
  EXPECT_EQ(cache->Stats().pools[0].cached.value(), 0u);
}

// ---- Broken promises of the embedder ----

// Forgets the blocks that it is told of.
class ForgetfulPolicy final : public EvictionPolicy {
 public:
  void Insert(BlockId, uint32_t, bool) override {}
  void Remove(BlockId) override {}
  BlockId First() const override { return kNoBlock; }
  BlockId Next(BlockId) const override { return kNoBlock; }
};

TEST(KvCacheManagerDeathTest, APolicyThatLosesBlocksIsFoundOut) {
  KvCacheOptions options = PoolOptions(2, 4);
  options.eviction = [](BlockLinks) -> std::unique_ptr<EvictionPolicy> {
    return std::make_unique<ForgetfulPolicy>();
  };
  auto cache = *KvCacheManager::Create(options);
  const Admission a = *cache->Allocate(Text(1, 8));
  ASSERT_TRUE(cache->Retire(a.step).ok());
  ASSERT_TRUE(cache->Free(a.id).ok());
  EXPECT_DEATH((void)cache->Allocate(Text(2, 4)), "invariant broken");
}

}  // namespace
}  // namespace paged_kv
