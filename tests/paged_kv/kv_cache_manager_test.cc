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

constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

// ---- Plan and Commit ----

TEST(KvCacheManagerTest, APlanHasNoVisibleEffect) {
  CacheScript cache(8, 4);
  cache.Free(cache.New(Text(1, 8)));
  const SequenceId id = cache.New(Text(2, 5));
  const std::vector<TokenId> prompt = Text(1, 9);
  const uint64_t before = cache->Fingerprint();
  {
    auto plan = cache->Plan(
        {StepRequest::Admit(prompt), StepRequest::Extend(id, TokenCount(4))});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->view().sequences.size(), 2u);
    EXPECT_EQ(cache->Fingerprint(), before);
    cache.Check();
  }
  EXPECT_EQ(cache->Fingerprint(), before);
  EXPECT_EQ(cache->Stats().steps_committed, 2u);
}

TEST(KvCacheManagerTest, AViewDescribesTheStep) {
  CacheScript cache(16, 4);
  cache.Free(cache.New(Text(1, 8)));
  const SequenceId id = cache.New(Text(2, 6));
  const std::vector<TokenId> prompt = Text(1, 10), next = Text(3, 3);
  StepRequest extend = StepRequest::Extend(id, next);
  extend.lookahead = TokenCount(2);
  const StepId step = cache.Step({extend, StepRequest::Admit(prompt)});
  const StepView view = cache.View(step);
  ASSERT_EQ(view.sequences.size(), 2u);
  const PlannedSequence& grown = view.sequences[0];
  EXPECT_EQ(grown.id, id);
  EXPECT_EQ(grown.kind, StepRequest::Kind::kExtend);
  EXPECT_EQ(grown.request, 0u);
  EXPECT_EQ(grown.cached_tokens, TokenCount(0));
  EXPECT_EQ(grown.first_new, TokenPos(6));
  EXPECT_EQ(grown.new_tokens, TokenCount(3));
  EXPECT_EQ(grown.lookahead, TokenCount(2));
  EXPECT_EQ(grown.Rows(), TokenCount(5));
  EXPECT_EQ(grown.Context(), TokenCount(11));
  const PlannedSequence& admitted = view.sequences[1];
  EXPECT_EQ(admitted.kind, StepRequest::Kind::kAdmit);
  EXPECT_EQ(admitted.cached_tokens, TokenCount(8));
  EXPECT_EQ(admitted.first_new, TokenPos(8));
  EXPECT_EQ(admitted.new_tokens, TokenCount(2));
  EXPECT_EQ(admitted.request, 1u);
  EXPECT_TRUE(cache->Describe(admitted.id).ok());
  // One block for each: tokens 8 to 10, and 8 and 9.
  ASSERT_EQ(view.new_blocks.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(view.new_blocks[i].sequence, i);
    EXPECT_EQ(view.new_blocks[i].group, GroupId(0));
    EXPECT_EQ(view.new_blocks[i].logical, 2u);
    EXPECT_EQ(view.new_blocks[i].block, cache.Table(view.sequences[i].id)[2]);
  }
  cache.Retire(step);
  EXPECT_EQ(cache->View(step).status().code(), kNotFound);
}

TEST(KvCacheManagerTest, OnlyTheLatestPlanOfTheLatestStateCommits) {
  CacheScript cache(16, 4);
  const SequenceId id = cache.New(Text(1, 5));
  const StepRequest extend = StepRequest::Extend(id, TokenCount(1));

  auto replaced = cache->Plan({&extend, 1});
  auto latest = cache->Plan({&extend, 1});
  cache.ExpectRefused(kAborted,
                      [&] { return cache->Commit(*std::move(replaced)); });
  const auto step = cache->Commit(*std::move(latest));
  ASSERT_TRUE(step.ok()) << step.status();
  // Committed twice: the plan is empty now.
  cache.ExpectRefused(kPrecondition,
                      [&] { return cache->Commit(*std::move(latest)); });
  cache.ExpectRefused(kPrecondition, [&] { return cache->Commit(StepPlan()); });
  cache.Retire(*step);

  // Even a plan that was refused replaces the one before.
  auto before = cache->Plan({&extend, 1});
  EXPECT_FALSE(cache->Plan({}).ok());
  cache.ExpectRefused(kAborted,
                      [&] { return cache->Commit(*std::move(before)); });
}

TEST(KvCacheManagerTest, EveryChangeMakesAPlanStaleAndNoRefusalDoes) {
  CacheScript cache(32, 4);
  const SequenceId id = cache.New(Text(1, 9));
  const SequenceId other = cache.New(Text(2, 5));
  const StepId flying = cache.Step({StepRequest::Extend(other, TokenCount(1))});
  PinId pin;
  const StepRequest extend = StepRequest::Extend(id, TokenCount(1));
  const auto commit_after = [&](auto change) {
    auto plan = cache->Plan({&extend, 1});
    EXPECT_TRUE(plan.ok()) << plan.status();
    change();
    return cache->Commit(*std::move(plan)).status().code();
  };
  EXPECT_EQ(commit_after([&] { pin = *cache->Pin(Text(1, 9)); }), kAborted);
  EXPECT_EQ(commit_after([&] { EXPECT_TRUE(cache->Unpin(pin).ok()); }),
            kAborted);
  EXPECT_EQ(commit_after([&] { EXPECT_TRUE(cache->Fork(id).ok()); }), kAborted);
  EXPECT_EQ(
      commit_after([&] {
        EXPECT_TRUE(cache->SetTokens(other, TokenPos(5), Text(3, 1)).ok());
      }),
      kAborted);
  EXPECT_EQ(commit_after(
                [&] { EXPECT_TRUE(cache->Truncate(id, TokenCount(9)).ok()); }),
            kAborted);
  EXPECT_EQ(commit_after([&] { EXPECT_TRUE(cache->Retire(flying).ok()); }),
            kAborted);
  EXPECT_EQ(commit_after([&] { EXPECT_TRUE(cache->Accept(id, {}).ok()); }),
            kAborted);
  EXPECT_EQ(commit_after([&] { EXPECT_TRUE(cache->Free(other).ok()); }),
            kAborted);
  // Looking, exporting and being refused change nothing.
  EXPECT_EQ(commit_after([&] {
              EXPECT_FALSE(cache->Free(other).ok());
              EXPECT_FALSE(cache->Reset().ok());
              EXPECT_FALSE(cache->Retire(StepId(99)).ok());
              EXPECT_EQ(cache.Hit(Text(1, 10)), 8u);
              EXPECT_TRUE(cache->TableSize({&id, 1}, GroupId(0)).ok());
              (void)cache->Stats();
              EXPECT_TRUE(cache->CheckInvariants().ok());
            }),
            absl::StatusCode::kOk);
  EXPECT_EQ(commit_after([&] { cache->FreeAll(); }), kAborted);
}

TEST(KvCacheManagerTest, APlanOfAnotherManagerIsRefused) {
  CacheScript one(8, 4), two(8, 4);
  const std::vector<TokenId> prompt = Text(1, 4);
  auto plan = one->Plan({StepRequest::Admit(prompt)});
  ASSERT_TRUE(plan.ok());
  two.ExpectRefused(kInvalid, [&] { return two->Commit(*std::move(plan)); });
}

TEST(KvCacheManagerTest, WrongRequestsAreRefused) {
  CacheScript cache(8, 4);
  const SequenceId id = cache.New(Text(1, 5));
  const std::vector<TokenId> prompt = Text(2, 4), none, two = Text(3, 2);
  const auto refused = [&](absl::StatusCode code, StepRequest request) {
    cache.ExpectRefused(code, [&] { return cache->Plan({&request, 1}); });
    // PlanFitting says the same of the request and plans the others.
    const StepRequest requests[] = {request, StepRequest::Admit(prompt)};
    absl::Status outcomes[2];
    auto plan = cache->PlanFitting(requests, outcomes);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(outcomes[0].code(), code) << outcomes[0];
    EXPECT_TRUE(outcomes[1].ok());
    ASSERT_EQ(plan->view().sequences.size(), 1u);
    EXPECT_EQ(plan->view().sequences[0].request, 1u);
  };
  refused(kInvalid, StepRequest::Admit(none));
  StepRequest priority = StepRequest::Admit(prompt);
  priority.priority = kPriorities;
  refused(kInvalid, priority);
  refused(kInvalid, StepRequest::Extend(id, TokenCount(0)));
  refused(kNotFound, StepRequest::Extend(SequenceId(4711), TokenCount(1)));
  refused(kNotFound,
          StepRequest::Extend(SequenceId(id.value() + (uint64_t{1} << 32)),
                              TokenCount(1)));
  StepRequest too_many_values = StepRequest::Extend(id, two);
  too_many_values.new_tokens = TokenCount(1);
  refused(kInvalid, too_many_values);
  const KeyExtra beyond = Content(TokenPos(4), "x");
  refused(kInvalid, StepRequest::Admit(prompt, {&beyond, 1}));
  const std::string long_value(600, 'x');
  const KeyExtra large = Salt(long_value);
  refused(kInvalid, StepRequest::Admit(prompt, {&large, 1}));
  refused(kOutOfRange, StepRequest::Extend(id, TokenCount(~0u)));
  StepRequest reserve = StepRequest::Extend(id, TokenCount(1));
  reserve.reserve_tokens = TokenCount(~0u);
  refused(kOutOfRange, reserve);
  StepRequest drafts = StepRequest::Admit(prompt);
  drafts.lookahead = TokenCount(~0u);
  refused(kOutOfRange, drafts);

  const StepRequest extend = StepRequest::Extend(id, TokenCount(1));
  cache.ExpectRefused(kInvalid, [&] { return cache->Plan({extend, extend}); });
  cache.ExpectRefused(kInvalid, [&] { return cache->Plan({}); });
  absl::Status one_outcome;
  cache.ExpectRefused(kInvalid, [&] {
    return cache->PlanFitting({extend, extend}, {&one_outcome, 1});
  });
}

TEST(KvCacheManagerTest, APlanThatLeavesOutAllIsAnEmptyStep) {
  CacheScript cache(4, 4);
  const std::vector<TokenId> never = Text(1, 17);
  const StepRequest request = StepRequest::Admit(never);
  absl::Status outcome;
  auto plan = cache->PlanFitting({&request, 1}, {&outcome, 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(outcome.code(), kOutOfRange);
  EXPECT_TRUE(plan->view().sequences.empty());
  const auto step = cache->Commit(*std::move(plan));
  ASSERT_TRUE(step.ok()) << step.status();
  cache.Retire(*step);
}

TEST(KvCacheManagerTest, TheReserveIsHeldAndThenUsed) {
  CacheScript cache(8, 4);
  const std::vector<TokenId> prompt = Text(1, 3);
  StepRequest request = StepRequest::Admit(prompt);
  request.reserve_tokens = TokenCount(13);
  const StepId step = cache.Step({request});
  const SequenceId id = cache.View(step).sequences[0].id;
  EXPECT_EQ(cache.Held(), 4u);
  EXPECT_EQ(cache.Pool().slots.reserved, 12u);
  EXPECT_EQ(cache->TableSize(step, GroupId(0))->pages, 1u);
  cache.Retire(step);
  const std::vector<BlockId> table = cache.Table(id);
  const StepId grow = cache.AppendUnwritten(id, Text(2, 9));
  EXPECT_TRUE(cache.View(grow).new_blocks.empty());
  EXPECT_EQ(cache.Table(id), table);
  EXPECT_EQ(cache.Pool().slots.reserved, 4u);
  cache.Retire(grow);
  cache.Truncate(id, 12);  // drops the rest
  EXPECT_EQ(cache.Held(), 3u);
  EXPECT_EQ(cache.Pool().slots.reserved, 0u);
}

TEST(KvCacheManagerTest, AdmissionsLeaveTheWatermarkAndGrowthMayUseIt) {
  KvCacheOptions options = PoolOptions(8, 4);
  options.watermark_blocks = BlockCount(2);
  CacheScript cache(options);
  const SequenceId id = cache.New(Text(1, 16));
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Allocate(Text(2, 12)); });
  cache.New(Text(2, 8));
  EXPECT_EQ(cache.F(), 2u);
  cache.ExpectRefused(absl::StatusCode::kResourceExhausted,
                      [&] { return cache->Allocate(Text(3, 1)); });
  cache.Append(id, Text(4, 8));
  EXPECT_EQ(cache.F(), 0u);
}

TEST(KvCacheManagerTest, HigherPrioritiesAreEvictedLast) {
  CacheScript cache(4, 4);
  for (uint32_t priority : {5u, 1u, 3u}) {
    const std::vector<TokenId> prompt = Text(static_cast<int32_t>(priority), 4);
    StepRequest request = StepRequest::Admit(prompt);
    request.priority = priority;
    cache.Retire(cache.Step({request}));
    cache.Free(cache->Sequences()[0]);
  }
  const auto kept = [&] {
    std::vector<int32_t> texts;
    for (int32_t text : {1, 3, 5}) {
      if (cache.Hit(Text(text, 5)) == 4) texts.push_back(text);
    }
    return texts;
  };
  cache.New(Text(9, 8));
  EXPECT_EQ(kept(), (std::vector<int32_t>{3, 5}));
  cache.New(Text(10, 4));
  EXPECT_EQ(kept(), (std::vector<int32_t>{5}));
}

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
