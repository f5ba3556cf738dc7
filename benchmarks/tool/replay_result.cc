// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/replay_result.h"

#include <algorithm>
#include <cstddef>

#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

uint64_t ReplayResult::Completed() const {
  return static_cast<uint64_t>(
      std::count_if(outcomes.begin(), outcomes.end(),
                    [](const RequestOutcome& o) { return o.completed; }));
}

double ReplayResult::HitRate() const {
  return Share(hit_tokens, prompt_tokens);
}

SlotCounts ReplayResult::FinalSlots() const {
  SlotCounts sum;
  for (const RequestOutcome& outcome : outcomes) {
    if (!outcome.completed) continue;
    sum.live += outcome.final_slots.live;
    sum.tail += outcome.final_slots.tail;
    sum.lookahead += outcome.final_slots.lookahead;
    sum.reserved += outcome.final_slots.reserved;
    sum.duplicate += outcome.final_slots.duplicate;
  }
  return sum;
}

double ReplayResult::FinalTailWaste() const {
  const SlotCounts slots = FinalSlots();
  return Share(slots.tail, slots.Allocated());
}

double ReplayResult::FinalReservedWaste() const {
  const SlotCounts slots = FinalSlots();
  return Share(slots.reserved, slots.Allocated());
}

double ReplayResult::FirstTokenSeconds(
    double p, const std::vector<absl::Duration>& arrivals) const {
  PAGED_KV_CHECK(arrivals.size() == outcomes.size());
  std::vector<double> seconds;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].completed) continue;
    seconds.push_back(
        absl::ToDoubleSeconds(outcomes[i].first_token - arrivals[i]));
  }
  if (seconds.empty()) return 0;
  const size_t rank =
      std::min(seconds.size() - 1,
               static_cast<size_t>(p * static_cast<double>(seconds.size())));
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<ptrdiff_t>(rank),
                   seconds.end());
  return seconds[rank];
}

}  // namespace paged_kv::tool
