// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_prefix_wait.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "paged_kv/key_extras.h"

namespace paged_kv::internal {
namespace {

bool Contains(const std::vector<KeyExtra>& extras, const KeyExtra& wanted) {
  return std::any_of(extras.begin(), extras.end(), [&](const KeyExtra& extra) {
    return extra.kind == wanted.kind && extra.position == wanted.position &&
           extra.value == wanted.value;
  });
}

// First position from which the keys of the two differ although their tokens
// may not.
uint32_t ExtrasAgreeBefore(const std::vector<KeyExtra>& a,
                           const std::vector<KeyExtra>& b) {
  uint32_t end = UINT32_MAX;
  for (const KeyExtra& extra : a) {
    if (!Contains(b, extra)) end = std::min(end, extra.position.value());
  }
  for (const KeyExtra& extra : b) {
    if (!Contains(a, extra)) end = std::min(end, extra.position.value());
  }
  return end;
}

// Steps until `leader` has written `tokens` of its tokens, if it gets the
// largest chunk in each.
uint64_t StepsUntil(const SchedulerState& state, const SampleState& leader,
                    uint32_t tokens) {
  if (leader.scheduled >= tokens) return state.steps.size();
  const uint32_t chunk = state.options.max_chunk_tokens;
  return state.steps.size() + (tokens - leader.scheduled + chunk - 1) / chunk;
}

bool CountWait(SchedulerState* state, SampleRef ref) {
  RequestState& request = state->requests.at(ref.request);
  SampleState& sample = request.samples[ref.sample];
  if (sample.prefix_wait_steps == 0) ++state->stats.prefix_waits;
  ++sample.prefix_wait_steps;
  ++request.costs.prefix_wait_steps;
  ++state->stats.prefix_wait_steps;
  return true;
}

// The most that waiting for one leader can bring.
struct BestLeader {
  SampleRef leader;
  uint32_t tokens = 0;
};

void Consider(const SchedulerState& state, SampleRef follower,
              SampleRef candidate, BestLeader* best) {
  const SampleState& leader = state.requests.at(candidate);
  if (leader.written >= leader.tokens.size()) return;
  const uint32_t tokens = SharablePrefix(state, follower, candidate);
  // What is written is in the cache already, if it can be found at all.
  if (tokens <= leader.written || tokens <= best->tokens) return;
  const uint32_t waited = state.requests.at(follower).prefix_wait_steps;
  if (waited + StepsUntil(state, leader, tokens) >
      state.options.max_prefix_wait_steps) {
    return;
  }
  *best = {candidate, tokens};
}

}  // namespace

uint32_t SharablePrefix(const SchedulerState& state, SampleRef follower,
                        SampleRef leader) {
  const RequestState& a = state.requests.at(follower.request);
  const RequestState& b = state.requests.at(leader.request);
  if (!a.share || !b.share) return 0;
  const std::vector<TokenId>& mine = a.samples[follower.sample].tokens;
  const std::vector<TokenId>& theirs = b.samples[leader.sample].tokens;
  const size_t limit =
      std::min({mine.size() - 1, theirs.size(),
                size_t{ExtrasAgreeBefore(a.extras, b.extras)}});
  const auto end =
      std::mismatch(mine.begin(), mine.begin() + limit, theirs.begin()).first;
  const uint32_t common = static_cast<uint32_t>(end - mine.begin());
  return common - common % state.chunk_tokens;
}

bool WaitsForPrefix(SchedulerState* state, SampleRef ref, uint32_t hit_tokens,
                    absl::Span<const DraftItem> admitted) {
  SampleState& sample = state->requests.at(ref);
  sample.awaited = AwaitedPrefix{};
  if (!state->cache->options().prefix_caching ||
      sample.prefix_wait_steps >= state->options.max_prefix_wait_steps) {
    return false;
  }
  BestLeader best;
  for (const RankedSample& entry : state->running) {
    Consider(*state, ref, entry.ref, &best);
  }
  for (const DraftItem& item : admitted) {
    Consider(*state, ref, item.ref, &best);
  }
  if (best.tokens <
      hit_tokens + uint64_t{state->options.prefix_wait_min_tokens})
    return false;
  if (best.tokens <= hit_tokens) return false;
  sample.awaited = {best.leader,
                    state->requests.at(best.leader.request).generation,
                    best.tokens};
  return CountWait(state, ref);
}

bool StillWaitsForPrefix(SchedulerState* state, SampleRef ref) {
  const SampleState& sample = state->requests.at(ref);
  const AwaitedPrefix& awaited = sample.awaited;
  if (awaited.tokens == 0) return false;
  const RequestState& owner = state->requests.at(awaited.leader.request);
  if (!owner.in_use || owner.generation != awaited.leader_generation) {
    return false;
  }
  const SampleState& leader = owner.samples[awaited.leader.sample];
  if (leader.phase != SampleState::Phase::kRunning ||
      leader.written >= awaited.tokens ||
      sample.prefix_wait_steps >= state->options.max_prefix_wait_steps) {
    return false;
  }
  return CountWait(state, ref);
}

}  // namespace paged_kv::internal
