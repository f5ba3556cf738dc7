// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_REPLAY_RESULT_H_
#define PAGED_KV_BENCHMARKS_TOOL_REPLAY_RESULT_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "benchmarks/tool/usage_meter.h"
#include "paged_kv/cache_stats.h"

namespace paged_kv::tool {

// What became of one request.
struct RequestOutcome {
  bool completed = false;   // false: it never fits
  uint32_t hit_tokens = 0;  // of its prompt, found when it was first admitted
  uint32_t preemptions = 0;
  SlotCounts final_slots;  // the states of its slots at its end
  // Since the replay's start; meaningless if it never fits.
  absl::Duration admitted;
  absl::Duration first_token;
  absl::Duration finished;
};

// What a replay measured. The terms are those of docs/glossary.md.
struct ReplayResult {
  explicit ReplayResult(uint64_t capacity) : usage(capacity) {}

  UsageMeter usage;
  std::vector<RequestOutcome> outcomes;  // [requests of the trace]

  uint64_t prompt_tokens = 0;  // of requests that were admitted
  uint64_t hit_tokens = 0;
  uint64_t preemptions = 0;
  uint64_t recomputed_tokens = 0;  // computed again after a preemption
  uint64_t evicted_blocks = 0;
  absl::Duration duration;  // of all steps and the idle time between them

  uint64_t Completed() const;
  uint64_t NeverFits() const { return outcomes.size() - Completed(); }
  double HitRate() const;
  // Sum of the final states over all completed requests.
  SlotCounts FinalSlots() const;
  // Unused slots of last blocks / allocated slots, at the final lengths.
  double FinalTailWaste() const;
  // Slots held for tokens that never came / allocated slots, likewise.
  double FinalReservedWaste() const;
  // The p-quantile of the time from arrival to first token, in seconds.
  // `arrivals` [requests].
  double FirstTokenSeconds(double p,
                           const std::vector<absl::Duration>& arrivals) const;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_REPLAY_RESULT_H_
