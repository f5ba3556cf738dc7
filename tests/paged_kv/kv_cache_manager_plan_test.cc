// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of step.h and of Plan, PlanFitting and Commit.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv {
namespace {

constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

TEST(KvCacheManagerPlanTest, APlanHasNoVisibleEffect) {
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

TEST(KvCacheManagerPlanTest, AViewDescribesTheStep) {
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

TEST(KvCacheManagerPlanTest, OnlyTheLatestPlanOfTheLatestStateCommits) {
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

TEST(KvCacheManagerPlanTest, EveryChangeMakesAPlanStaleAndNoRefusalDoes) {
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

TEST(KvCacheManagerPlanTest, APlanOfAnotherManagerIsRefused) {
  CacheScript one(8, 4), two(8, 4);
  const std::vector<TokenId> prompt = Text(1, 4);
  auto plan = one->Plan({StepRequest::Admit(prompt)});
  ASSERT_TRUE(plan.ok());
  two.ExpectRefused(kInvalid, [&] { return two->Commit(*std::move(plan)); });
}

TEST(KvCacheManagerPlanTest, WrongRequestsAreRefused) {
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

TEST(KvCacheManagerPlanTest, APlanThatLeavesOutAllIsAnEmptyStep) {
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

TEST(KvCacheManagerPlanTest, TheReserveIsHeldAndThenUsed) {
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

TEST(KvCacheManagerPlanTest, AdmissionsLeaveTheWatermarkAndGrowthMayUseIt) {
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

TEST(KvCacheManagerPlanTest, HigherPrioritiesAreEvictedLast) {
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

}  // namespace
}  // namespace paged_kv
