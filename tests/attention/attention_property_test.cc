// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random problems against the double-precision reference, on every instruction
// set that the machine runs.
//
// Environment: PAGED_KV_TEST_SEED (default 1), PAGED_KV_TEST_SHAPES (default
// 2000; the sanitizers' preset asks for fewer). Problem i has seed
// PAGED_KV_TEST_SEED + i, so a failure is repeated alone with its own seed and
// PAGED_KV_TEST_SHAPES=1.

#include <cstdint>
#include <iostream>
#include <string>

#include "attention/isa.h"
#include "gtest/gtest.h"
#include "tests/support/attention_environment.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random_spec.h"

namespace paged_kv::attention::testing {
namespace {

TEST(AttentionPropertyTest, RandomShapesAgreeWithReferenceOnEveryIsa) {
  const uint64_t seed = EnvironmentNumber("PAGED_KV_TEST_SEED", 1);
  const uint64_t shapes = EnvironmentNumber("PAGED_KV_TEST_SHAPES", 2000);
  std::cout << "PAGED_KV_TEST_SEED=" << seed
            << " PAGED_KV_TEST_SHAPES=" << shapes << std::endl;
  ThreadPool pool(2);
  for (uint64_t i = 0; i < shapes; ++i) {
    const AttentionSpec spec = RandomSpec(seed + i);
    SCOPED_TRACE(ToString(spec));
    const AttentionProblem problem(spec);
    const auto want = RunReference(problem, pool);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const Isa isa : SupportedIsas()) {
      SCOPED_TRACE(IsaName(isa));
      const auto got = RunKernel(problem, isa, pool);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(Compare(*want, *got, ToleranceFor(isa, spec.shape.dtype)), "");
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing
