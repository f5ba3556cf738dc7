// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/stress_run.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "paged_kv/op_log.h"
#include "tests/support/lockstep_cache.h"

namespace paged_kv::tool {

using testing::LockstepCache;
using testing::Operation;
using testing::RandomCache;

testing::RandomCache StressCache(const StressOptions& options, uint64_t round) {
  // Every other round is the plain cache with as many sequences as its pool
  // can feed; the kinds take turns in between.
  const auto kind = static_cast<uint32_t>(
      round % 2 == 0 ? 0 : round / 2 % testing::kRandomCacheKinds);
  RandomCache cache = testing::MakeRandomCache(
      kind, StressRoundSeed(options, round), options.pool_blocks);
  return cache;
}

uint64_t StressRoundSeed(const StressOptions& options, uint64_t round) {
  testing::RandomBits mix(options.seed);
  return mix() + round;
}

namespace {

// One round. If `log` is not null, it takes the operation log.
void RunRound(const StressOptions& options, uint64_t round, uint64_t count,
              StringOpLog* log, Progress& progress, StressResult* result) {
  RandomCache kind = StressCache(options, round);
  kind.options.op_log = log;
  testing::LockstepOptions lockstep;
  lockstep.violate_at_call = options.pretend_violation_at;
  absl::StatusOr<std::unique_ptr<LockstepCache>> created =
      LockstepCache::Create(kind.options, lockstep);
  if (!created.ok()) {
    ++result->violations;
    result->violation = created.status().ToString();
    return;
  }
  LockstepCache& cache = **created;
  testing::OperationRunner runner(&cache, kind.workload);
  testing::RandomOperations random(StressRoundSeed(options, round));
  for (uint64_t i = 0; i < count && cache.ok(); ++i) {
    const Operation operation = random.Next(cache.model());
    StressResult::Count& by_kind =
        result->by_kind[static_cast<size_t>(operation.kind)];
    const bool granted = runner.Run(operation);
    ++by_kind.operations;
    by_kind.granted += granted ? 1 : 0;
    ++result->operations;
    result->granted += granted ? 1 : 0;
    progress.Update(result->operations, options.operations);
  }
  cache.CheckAll();
  result->calls += cache.calls();
  ++result->rounds;
  if (cache.ok()) return;
  ++result->violations;
  result->violation = cache.violation();
  result->cache = kind.name;
  result->violation_round = round;
}

}  // namespace

StressResult RunStress(const StressOptions& options, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  progress.Start("operations against the model");
  StressResult result;
  for (uint64_t round = options.first_round;
       result.operations < options.operations && result.violations == 0;
       ++round) {
    const uint64_t left = options.operations - result.operations;
    RunRound(options, round, std::min(left, kStressRound), nullptr, progress,
             &result);
  }
  if (result.violations > 0) {
    // Once more with the log on: the same seed gives the same operations.
    StringOpLog log;
    StressResult again;
    RunRound(options, result.violation_round, kStressRound, &log, progress,
             &again);
    result.log = log.contents();
  }
  progress.Clear();
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

}  // namespace paged_kv::tool
