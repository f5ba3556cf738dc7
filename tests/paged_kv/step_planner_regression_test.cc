// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv {
namespace {

std::vector<TokenId> Count(TokenId first, size_t n) {
  std::vector<TokenId> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Earlier requests of a plan may count on evicting the very blocks that a
// later one hits. The later one has to be refused; it once drove the number of
// available blocks below zero, passed every check and left the plan without
// blocks to name.
TEST(StepPlannerRegressionTest, HitsOnBlocksThatEarlierRequestsEvict) {
  KvCacheOptions options;
  options.groups = {LayerGroup()};
  options.groups[0].shape.block_tokens = 4;
  options.host_blocks = BlockCount(5);
  const auto cache = KvCacheManager::Create(options);
  ASSERT_TRUE(cache.ok()) << cache.status();
  KvCacheManager& manager = **cache;

  const std::vector<TokenId> cached = Count(0, 13);
  const auto first =
      manager.Allocate(absl::MakeConstSpan(cached).subspan(0, 12));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(manager.Retire(first->step).ok());
  ASSERT_TRUE(manager.Free(first->id).ok());
  ASSERT_EQ(manager.Stats().pools[0].cached, BlockCount(3));

  const std::vector<TokenId> other = Count(100, 16);
  const std::vector<StepRequest> requests = {StepRequest::Admit(other),
                                             StepRequest::Admit(cached)};
  const auto plan = manager.Plan(requests);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(manager.CheckInvariants().ok());

  // In the other order the hit comes first and the fresh prompt is refused.
  const std::vector<StepRequest> reversed = {requests[1], requests[0]};
  std::vector<absl::Status> outcomes(2);
  const auto fitting = manager.PlanFitting(reversed, absl::MakeSpan(outcomes));
  ASSERT_TRUE(fitting.ok()) << fitting.status();
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_EQ(outcomes[1].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fitting->view().sequences[0].cached_tokens, TokenCount(12));
}

}  // namespace
}  // namespace paged_kv
