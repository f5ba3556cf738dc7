// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The audit that all other tests rely on: every kind of damage is found, and
// the fingerprint tells states apart.

#include "paged_kv/state_check.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/sequence_edit.h"
#include "paged_kv/step_commit.h"
#include "paged_kv/step_planner.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv::internal {
namespace {

// LRU that can be told to lose its blocks, or to name one that is not its own.
class LyingPolicy final : public EvictionPolicy {
 public:
  enum class Lie { kNone, kNoBlocks, kForeignBlock };
  static inline Lie lie = Lie::kNone;

  explicit LyingPolicy(BlockLinks links) : lru_(MakeLruPolicy(links)) {
    lie = Lie::kNone;
  }
  void Insert(BlockId block, uint32_t priority, bool was_hit) override {
    lru_->Insert(block, priority, was_hit);
  }
  void Remove(BlockId block) override { lru_->Remove(block); }
  BlockId First() const override {
    if (lie == Lie::kNoBlocks) return kNoBlock;
    return lie == Lie::kForeignBlock ? BlockId(0) : lru_->First();
  }
  BlockId Next(BlockId block) const override { return lru_->Next(block); }

 private:
  std::unique_ptr<EvictionPolicy> lru_;
};

// Group 0 keeps everything, group 1 has a window of 4; blocks of 4 tokens.
// Slot 0: 10 tokens of text 1, written, indexed; slot 1: its fork; a pin of
// text 2, whose two cached blocks nobody else holds; text 3 is cached, free.
class StateCheckTest : public testing::Test {
 protected:
  StateCheckTest() {
    KvCacheOptions options = PoolOptions(24, 4);
    options.groups.push_back(options.groups[0]);
    options.groups[1].shape.head_dim = 64;
    options.groups[1].window = 4;
    options.max_sequences = 4;
    options.max_tokens_per_sequence = 64;
    options.eviction = [](BlockLinks links) -> std::unique_ptr<EvictionPolicy> {
      return std::make_unique<LyingPolicy>(links);
    };
    EXPECT_TRUE(MakeState(options, &state_).ok());
    const uint32_t slot = Admit(Text(1, 10));
    EXPECT_EQ(slot, 0u);
    const auto fork = ForkSequence(&state_, 0);
    EXPECT_TRUE(fork.ok()) << fork.status();
    for (int32_t text : {2, 3}) {
      CloseSequence(&state_, Admit(Text(text, 9)));
    }
    EXPECT_TRUE(PinPrefix(&state_, Text(2, 9), {}).ok());
    EXPECT_EQ(state_.pools[0]->cached(), 2u);
    EXPECT_TRUE(CheckState(state_).ok()) << CheckState(state_);
  }

  uint32_t Admit(const std::vector<TokenId>& prompt) {
    PlanRecord& record = state_.UnusedRecord();
    const StepRequest request = StepRequest::Admit(prompt);
    EXPECT_TRUE(PlanStep(&state_, {&request, 1}, {}, &record).ok());
    CommitStep(&state_, &record);
    RetireStep(&state_, &record);
    return record.entries[0].slot;
  }

  BlockPool& pool(uint32_t g = 0) { return *state_.pools[g]; }
  BlockId* table(uint32_t slot, uint32_t g = 0) {
    return state_.sequences.blocks(slot, state_.groups[g]);
  }
  Sequence& sequence(uint32_t slot) { return state_.sequences.at(slot); }

  void ExpectBroken(absl::string_view message) {
    const absl::Status status = CheckState(state_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << message;
    EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  }

  CacheState state_;
};

TEST_F(StateCheckTest, TablesOfTheWrongLength) {
  state_.sequences.extent(0, 0).size = 2;
  ExpectBroken("sequence slot 0, group 0: 2 blocks for 10 tokens");
  state_.sequences.extent(0, 0).size = 17;
  ExpectBroken("17 blocks for 10 tokens");
}

TEST_F(StateCheckTest, DraftsNeedBlocks) {
  sequence(0).lookahead = 3;
  ExpectBroken("3 blocks for 13 tokens and drafts");
}

TEST_F(StateCheckTest, WindowsThatReleasedTooMuch) {
  // Token 10 attends to tokens 7 to 10.
  ASSERT_EQ(state_.sequences.extent(0, 1).first, 1u);
  state_.sequences.extent(0, 1).first = 2;
  ExpectBroken("group 1: released blocks up to 2 at 10 tokens");
}

TEST_F(StateCheckTest, HolesInTables) {
  const BlockId block = std::exchange(table(0)[1], kNoBlock);
  ExpectBroken("logical block 1 is missing");
  table(0)[1] = block;
  ASSERT_EQ(table(0, 1)[0], kNoBlock);
  table(0, 1)[0] = BlockId(3);
  ExpectBroken("logical block 0 is not missing");
}

TEST_F(StateCheckTest, BlocksThatThePoolDoesNotHave) {
  table(0)[1] = BlockId(24);
  ExpectBroken("logical block 1 is block 24 of 24");
}

TEST_F(StateCheckTest, ReferencesThatNoTableHas) {
  pool().AddRef(table(0)[0]);
  ExpectBroken("of pool 0 counts 3 references, tables have 2");
}

TEST_F(StateCheckTest, BlocksThatNobodyHolds) {
  pool(1).TakeFree();
  ExpectBroken("of pool 1 counts 1 references, tables have 0");
}

TEST_F(StateCheckTest, TwoTablesWithAReferenceForOne) {
  table(1)[0] = table(1)[1];
  ExpectBroken("references, tables have");
}

TEST_F(StateCheckTest, SlotsThatAreNotFilled) {
  // The fork's tail is shared; as its only owner, slot 0 could write.
  CloseSequence(&state_, 1);
  const BlockId tail = table(0)[2];
  pool().SetFill(tail, 1, 0);
  ExpectBroken("logical block 2 has 1 slots filled, the sequence needs 2");
  pool().SetFill(tail, 2, 1);
  ExpectBroken("logical block 2 has 1 draft slots of nobody");
}

TEST_F(StateCheckTest, AFullBlockInFrontOfTheTailIsFull) {
  sequence(0).share = false;
  CloseSequence(&state_, 1);
  state_.index->Detach(&pool(), table(0)[1]);
  EXPECT_TRUE(CheckState(state_).ok()) << CheckState(state_);
  pool().SetFill(table(0)[1], 3, 0);
  ExpectBroken("logical block 1 has 3 slots filled, the sequence needs 4");
}

TEST_F(StateCheckTest, TokensThatAreNotThoseOfTheIndex) {
  ++state_.sequences.tokens(0)[5];
  ExpectBroken("sequence slot 0: chunk 1 of 2 is not in the index");
}

TEST_F(StateCheckTest, CursorsThatPointElsewhere) {
  sequence(0).cursor = state_.index->Parent(sequence(0).cursor);
  ExpectBroken("sequence slot 0 is at node");
}

TEST_F(StateCheckTest, MoreWrittenThanThereIs) {
  sequence(1).written = 11;
  ExpectBroken("sequence slot 1 has 11 tokens written of 10");
}

TEST_F(StateCheckTest, MoreAliveThanCounted) {
  ASSERT_FALSE(sequence(3).alive);
  sequence(3).alive = true;
  ExpectBroken("counts 2 sequences, has 3");
}

TEST_F(StateCheckTest, QuarantineWithoutAStep) {
  const BlockId block = pool().TakeFree();
  ASSERT_TRUE(pool().DropRef(block));
  pool().Quarantine(block, 0);
  ExpectBroken("pool 0 has 1 blocks in quarantine and no step in flight");
}

TEST_F(StateCheckTest, ReferencesToFreeAndCachedBlocks) {
  const BlockId free = pool().FirstFree();
  pool().CountRefAhead(free, 1);
  ExpectBroken("in state 0 has 1 references");
  pool().CountRefAhead(free, -1);
  const BlockId cached = pool().policy().First();
  pool().CountRefAhead(cached, 1);
  ExpectBroken("has 1 references");
}

TEST_F(StateCheckTest, EvictionOrdersThatAreNotTheCachedBlocks) {
  LyingPolicy::lie = LyingPolicy::Lie::kNoBlocks;
  ExpectBroken("eviction order has 0 of 2 blocks");
  LyingPolicy::lie = LyingPolicy::Lie::kForeignBlock;
  ExpectBroken("eviction order reaches block 0 as entry");
}

TEST_F(StateCheckTest, NodesWithReferencesOfNobody) {
  state_.index->Pin(sequence(0).cursor.node);
  ExpectBroken("refs for");
}

TEST_F(StateCheckTest, EveryPartOfTheStateIsInTheFingerprint) {
  using Change = std::function<void()>;
  Sequence& s = sequence(0);
  const std::vector<std::pair<std::string, Change>> changes = {
      {"tokens", [&] { ++s.tokens; }},
      {"written", [&] { --s.written; }},
      {"known", [&] { --s.known; }},
      {"lookahead", [&] { ++s.lookahead; }},
      {"cached", [&] { ++s.cached; }},
      {"indexed chunks", [&] { --s.indexed_chunks; }},
      {"share", [&] { s.share = !s.share; }},
      {"priority", [&] { ++s.priority; }},
      {"generation", [&] { ++s.generation; }},
      {"a token", [&] { ++state_.sequences.tokens(0)[8]; }},
      {"extras", [&] { ++s.extra_bytes; }},
      {"first block", [&] { ++state_.sequences.extent(0, 1).first; }},
      {"table length", [&] { --state_.sequences.extent(0, 0).size; }},
      {"a table entry", [&] { std::swap(table(0)[0], table(0)[1]); }},
      {"references", [&] { pool().AddRef(table(0)[0]); }},
      {"state of a block", [&] { pool().TakeFree(); }},
      {"priority of a block", [&] { pool().RaisePriority(table(0)[0], 7); }},
      {"a block was hit", [&] { pool().MarkHit(table(0)[0]); }},
      {"steps", [&] { ++state_.last_step; }},
      {"retired steps", [&] { --state_.retired_step; }},
      {"admissions", [&] { ++state_.sequences_admitted; }},
      {"prompt tokens", [&] { ++state_.prompt_tokens; }},
      {"hit tokens", [&] { ++state_.hit_tokens; }},
      {"blocks taken", [&] { ++state_.blocks_taken; }},
      {"evictions", [&] { ++state_.blocks_evicted; }},
      {"copies", [&] { ++state_.blocks_copied; }},
      {"unshared chunks", [&] { ++state_.unshared_chunks; }},
      {"eviction order",
       [] { LyingPolicy::lie = LyingPolicy::Lie::kNoBlocks; }},
  };
  // Changes pile up: each must give a value that was not there before.
  std::vector<uint64_t> seen = {FingerprintOf(state_)};
  EXPECT_EQ(FingerprintOf(state_), seen[0]);
  for (const auto& [what, change] : changes) {
    change();
    const uint64_t now = FingerprintOf(state_);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), now), 0) << what;
    seen.push_back(now);
  }
  s.alive = false;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), FingerprintOf(state_)), 0);
}

}  // namespace
}  // namespace paged_kv::internal
