// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The work of `pagedkv stress`, without its flags and its words.

#ifndef PAGED_KV_BENCHMARKS_TOOL_STRESS_RUN_H_
#define PAGED_KV_BENCHMARKS_TOOL_STRESS_RUN_H_

#include <array>
#include <cstdint>
#include <string>

#include "benchmarks/tool/progress.h"
#include "tests/support/random_operations.h"

namespace paged_kv::tool {

struct StressOptions {
  uint64_t operations = 2000000;
  uint64_t seed = 1;
  uint32_t threads = 1;
  uint32_t pool_blocks = 256;
  // Rounds before this one are left out: repeats a violation quickly.
  uint64_t first_round = 0;
  // The call at which every round claims a violation, to test what follows
  // from one; 0: none.
  uint64_t pretend_violation_at = 0;
};

struct StressResult {
  struct Count {
    uint64_t operations = 0;
    uint64_t granted = 0;
  };
  std::array<Count, testing::kOperationKinds> by_kind;  // of Operation::Kind
  uint64_t operations = 0;
  uint64_t granted = 0;
  uint64_t calls = 0;  // compared with the model, one by one
  uint64_t rounds = 0;
  double seconds = 0;

  uint64_t violations = 0;  // 0 or 1: the first one ends the run
  std::string violation;    // what it was
  std::string cache;        // the kind of cache that it was found on
  uint64_t violation_round = 0;
  std::string log;  // operation log of that round up to it

  double SuccessShare() const {
    return operations == 0
               ? 0
               : static_cast<double>(granted) / static_cast<double>(operations);
  }
};

// Operations per round. Each round is a new cache of the next kind, so that a
// violation is never far from an empty cache.
inline constexpr uint64_t kStressRound = 50000;

// Random operations on a manager and the naive model in lock-step, compared at
// every call, everything at every 64th.
StressResult RunStress(const StressOptions& options, Progress& progress);

// The same on ThreadSafeKvCache from `options.threads` threads; the log of
// each round, in the order in which its calls took effect, is then applied to
// the model, and to a new manager that must end in the same state.
StressResult RunThreadedStress(const StressOptions& options,
                               Progress& progress);

// The cache of a round.
testing::RandomCache StressCache(const StressOptions& options, uint64_t round);
// The seed of its operations.
uint64_t StressRoundSeed(const StressOptions& options, uint64_t round);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_STRESS_RUN_H_
