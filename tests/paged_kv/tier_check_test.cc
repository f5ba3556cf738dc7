// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The audit of the device tier: every kind of damage between sequences, blocks
// and device pages is found.

#include "paged_kv/tier_check.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/residency.h"
#include "paged_kv/sequence_edit.h"
#include "paged_kv/step_commit.h"
#include "paged_kv/step_planner.h"
#include "paged_kv/tier_swap.h"
#include "tests/paged_kv/cache_script.h"

namespace paged_kv::internal {
namespace {

constexpr uint32_t kOnDevice = 0;  // slot of the sequence on the device
constexpr uint32_t kInHost = 1;    // slot of the one in host memory
constexpr uint32_t kNoRun = 1;     // see DevicePagePool::Take
constexpr uint32_t kFirstStepList = 0;

// Two sequences of three blocks each, in a pool with room to spare on both
// tiers.
class TierCheckTest : public testing::Test {
 protected:
  TierCheckTest() {
    KvCacheOptions options = PoolOptions(12, 4);
    options.device.pages = BlockCount(8);
    options.max_sequences = 4;
    options.max_tokens_per_sequence = 64;
    EXPECT_TRUE(MakeState(options, &state_).ok());
    Admit(Text(1, 10));
    Admit(Text(2, 10));
    const SequenceId first = state_.sequences.IdOf(kOnDevice);
    EXPECT_TRUE(CheckSwap(&state_, {&first, 1}).ok());
    EXPECT_TRUE(SwapSequencesIn(&state_, {&first, 1}, kAllTokens).ok());
    const std::vector<TierTransfer> transfers(
        state_.transfers.data(),
        state_.transfers.data() + state_.transfers.size());
    EXPECT_EQ(transfers.size(), 3u);
    for (const TierTransfer& transfer : transfers) {
      EXPECT_TRUE(EndTransfer(&state_, transfer.id, /*moved=*/true).ok());
    }
    EXPECT_TRUE(CheckTiers(state_).ok()) << CheckTiers(state_);
  }

  void Admit(const std::vector<TokenId>& prompt) {
    PlanRecord& record = state_.UnusedRecord();
    const StepRequest request = StepRequest::Admit(prompt);
    EXPECT_TRUE(PlanStep(&state_, {&request, 1}, {}, &record).ok());
    CommitStep(&state_, &record);
    RetireStep(&state_, &record);
  }

  BlockPool& pool() { return *state_.pools[0]; }
  DeviceTier& tier() { return *state_.tiers[0]; }
  Sequence& sequence(uint32_t slot) { return state_.sequences.at(slot); }
  BlockId* table(uint32_t slot) {
    return state_.sequences.blocks(slot, state_.groups[0]);
  }
  BlockId FreeBlock() const {
    for (uint32_t i = 0; i < state_.pools[0]->capacity(); ++i) {
      if (state_.pools[0]->state(BlockId(i)) == BlockState::kFree) {
        return BlockId(i);
      }
    }
    return kNoBlock;
  }
  // A page for `block`, on which nobody is seated.
  uint32_t TakePage(BlockId block, uint32_t step_list = DeviceTier::kNoList) {
    const uint32_t page =
        tier().Take(block, GroupId(0), /*logical=*/0, kNoPage, kNoRun);
    tier().DropSeat(page, step_list);
    return page;
  }

  void ExpectBroken(absl::string_view message) {
    const absl::Status status = CheckTiers(state_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << message;
    EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  }

  CacheState state_;
};

TEST_F(TierCheckTest, PagesOfAnotherPlaceInTheSequence) {
  std::swap(table(kOnDevice)[0], table(kOnDevice)[1]);
  ExpectBroken("has a page for another place");
}

TEST_F(TierCheckTest, SeatsWithoutAPage) {
  sequence(kInHost).seated_tokens = 4;  // its first block
  ExpectBroken("is seated without a page");
}

TEST_F(TierCheckTest, SequencesThatAreNotValidAtHome) {
  sequence(kInHost).seated_tokens = kAllTokens;
  ExpectBroken("is not valid where its sequence is at home");
  sequence(kInHost).seated_tokens = 0;
  ASSERT_TRUE(CheckTiers(state_).ok());
  // What the device wrote itself is not in host memory.
  tier().MarkDirty(tier().PageOf(table(kOnDevice)[2]));
  ASSERT_TRUE(CheckTiers(state_).ok());
  sequence(kOnDevice).seated_tokens = 0;
  sequence(kOnDevice).settling = false;
  ExpectBroken("is not valid where its sequence is at home");
}

TEST_F(TierCheckTest, SeatsOfNobodyAndForgottenOnes) {
  const uint32_t page = tier().PageOf(table(kOnDevice)[1]);
  tier().AddSeat(page);
  ExpectBroken("counts 2 seats, sequences have 1");
  tier().DropSeat(page, DeviceTier::kNoList);
  ASSERT_TRUE(CheckTiers(state_).ok());
  tier().DropSeat(page, DeviceTier::kNoList);
  ExpectBroken("counts 0 seats, sequences have 1");
}

TEST_F(TierCheckTest, PagesOfFreeBlocks) {
  TakePage(FreeBlock());
  ExpectBroken("has device page");
}

TEST_F(TierCheckTest, QuarantineForATransferThatIsNone) {
  const BlockId block = pool().TakeFree();
  ASSERT_TRUE(pool().DropRef(block));
  pool().Quarantine(block, state_.TransferQuarantine());
  ExpectBroken("has no device page");
}

TEST_F(TierCheckTest, ContentThatIsWrittenBackAndNotHeldBack) {
  pool().HoldBack();
  ExpectBroken("holds 1 cached blocks back, 0 are being written back");
}

TEST_F(TierCheckTest, PagesInQuarantineWithoutAStep) {
  TakePage(table(kInHost)[0], kFirstStepList);
  ExpectBroken("1 device pages in quarantine and no step in flight");
}

}  // namespace
}  // namespace paged_kv::internal
