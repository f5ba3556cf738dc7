// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random operations against the naive model, on caches of every kind.

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/lockstep_cache.h"
#include "tests/support/random_operations.h"
#include "tests/support/random_options.h"
#include "tests/support/shrink_operations.h"

namespace paged_kv::testing {
namespace {

struct RunResult {
  std::string violation;  // empty: none
  uint64_t operations = 0;
  uint64_t granted = 0;
};

// Runs `count` random operations on one cache. A violation is shrunk to few
// operations, to paste into a regression test.
RunResult RunRandom(const RandomCache& kind, uint64_t seed, uint64_t count) {
  LockstepOptions lockstep;
  lockstep.full_check_every = 8;
  lockstep.fingerprint_every = 1;
  auto cache = LockstepCache::Create(kind.options, lockstep);
  if (!cache.ok()) return {cache.status().ToString()};
  OperationRunner runner(cache->get(), kind.workload);
  RandomOperations operations(seed);
  std::vector<Operation> history;
  RunResult result;
  while (result.operations < count && (*cache)->ok()) {
    history.push_back(operations.Next((*cache)->model()));
    ++result.operations;
    result.granted += runner.Run(history.back()) ? 1 : 0;
  }
  (*cache)->CheckAll();
  if ((*cache)->ok()) return result;
  result.violation = absl::StrCat(
      (*cache)->violation(), "\nshrunk: ", ShrinkOperations(kind, history));
  return result;
}

class KvCacheManagerPropertyTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(KvCacheManagerPropertyTest, AgreesWithTheModelAtEveryCall) {
  const uint64_t seed = TestSeed(1);
  uint64_t operations = 0, granted = 0;
  // Short runs find short counterexamples; long ones reach full pools.
  constexpr uint64_t kLengths[] = {40, 200, 200, 2000, 2000, 2000};
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < std::size(kLengths); ++i) {
      const uint64_t run_seed = seed * 1000003 + round * 101 + i;
      const RandomCache cache = MakeRandomCache(GetParam(), run_seed, 0);
      const RunResult result = RunRandom(cache, run_seed, kLengths[i]);
      operations += result.operations;
      granted += result.granted;
      ASSERT_TRUE(result.violation.empty())
          << result.violation << cache.name << "\nseed " << run_seed
          << ", operation " << result.operations << " of " << kLengths[i];
    }
  }
  // Tiny pools refuse more; none may refuse nearly everything.
  EXPECT_GE(granted * 10, operations * 4) << granted << " of " << operations;
}

INSTANTIATE_TEST_SUITE_P(EveryKind, KvCacheManagerPropertyTest,
                         ::testing::Range(0u, kRandomCacheKinds));

TEST(KvCacheManagerPropertyTest, ThreeOfFiveOperationsAreGranted) {
  const uint64_t seed = TestSeed(2);
  const RandomCache cache = MakeRandomCache(0, seed, 256);
  const RunResult result = RunRandom(cache, seed, 20000);
  EXPECT_TRUE(result.violation.empty()) << result.violation;
  EXPECT_GE(result.granted * 10, result.operations * 6);
}

}  // namespace
}  // namespace paged_kv::testing
