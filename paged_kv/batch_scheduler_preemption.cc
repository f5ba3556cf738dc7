// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_preemption.h"

#include <algorithm>

#include "paged_kv/batch_scheduler_lifecycle.h"

namespace paged_kv::internal {
namespace {

// What comes back may belong to others or be too little, again and again;
// having paused for so many steps, a sample gets its victim.
constexpr uint32_t kMaxPatience = 4;

bool BlocksComeBack(const SchedulerState& state) {
  if (state.steps.empty()) return false;
  if (!(state.last_release < state.steps.oldest().id)) return true;
  for (const RankedSample& entry : state.running) {
    const RequestState& request = state.requests.at(entry.ref.request);
    if (request.EndsInFlight(request.samples[entry.ref.sample])) return true;
  }
  return false;
}

// Freed blocks with a transfer in flight come back when it ends.
bool TransfersHoldBlocks(const SchedulerState& state) {
  if (state.transfers.empty() || !state.steps.empty()) return false;
  const CacheStats stats = state.cache->Stats();
  return std::any_of(
      stats.pools.begin(), stats.pools.end(),
      [](const PoolStats& pool) { return pool.quarantined > BlockCount(0); });
}

}  // namespace

Relief MakeRoom(SchedulerState* state, const RankedSample& beneficiary) {
  SampleState& sample = state->requests.at(beneficiary.ref);
  if (TransfersHoldBlocks(*state)) return {Relief::Kind::kLater, std::nullopt};
  if (sample.stalls_in_a_row < kMaxPatience && BlocksComeBack(*state)) {
    return {Relief::Kind::kLater, std::nullopt};
  }
  const RankedSample worst = state->running.worst();
  if (!(beneficiary < worst)) return {Relief::Kind::kNone, std::nullopt};
  sample.stalls_in_a_row = 0;
  PreemptSample(state, worst.ref);
  const bool now = state->steps.empty() && state->transfers.empty();
  return {now ? Relief::Kind::kNow : Relief::Kind::kLater, worst.ref};
}

}  // namespace paged_kv::internal
