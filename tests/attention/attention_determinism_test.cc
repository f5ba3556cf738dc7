// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The same bits for any number of threads and any order of tasks.

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random_spec.h"
#include "tests/support/sanitized.h"

namespace paged_kv::attention::testing {
namespace {

// An embedder's own: one thread, last task first, workers in turn.
class BackwardFor final : public ParallelFor {
 public:
  size_t num_workers() const override { return 5; }
  void Run(size_t num_tasks, Task task) override {
    for (size_t t = num_tasks; t-- > 0;) task(t, t % num_workers());
  }
};

void ExpectSameBits(const AttentionSpec& spec, Isa isa) {
  SCOPED_TRACE(ToString(spec));
  const AttentionProblem problem(spec);
  SerialFor serial;
  const auto want = RunKernel(problem, isa, serial);
  ASSERT_TRUE(want.ok()) << want.status();
  ThreadPool one(1), two(2), three(3);
  BackwardFor backward;
  for (ParallelFor* parallel :
       std::initializer_list<ParallelFor*>{&one, &two, &three, &backward}) {
    const auto got = RunKernel(problem, isa, *parallel);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(std::memcmp(got->out.data(), want->out.data(),
                          want->out.size() * sizeof(float)),
              0);
    ASSERT_EQ(std::memcmp(got->lse.data(), want->lse.data(),
                          want->lse.size() * sizeof(float)),
              0);
  }
}

TEST(AttentionDeterminismTest, SplitDecode) {
  for (const Isa isa : SupportedIsas()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kFp8E4M3, DType::kInt8}) {
      AttentionSpec spec;
      spec.shape.dtype = dtype;
      spec.shape.kv_heads = 2;
      spec.group = 7;
      spec.decode = true;
      spec.sequences = {{1, 5000}};
      ExpectSameBits(spec, isa);
      spec.sequences = {{1, 3000}, {1, 17}, {1, 1025}};
      spec.options.window = 2000;
      spec.options.sink_tokens = 20;
      ExpectSameBits(spec, isa);
    }
  }
}

TEST(AttentionDeterminismTest, MixedBatch) {
  for (const Isa isa : SupportedIsas()) {
    for (const DType dtype : {DType::kBF16, DType::kFp8E4M3, DType::kInt8}) {
      AttentionSpec spec;
      spec.shape.dtype = dtype;
      spec.shape.kv_heads = 2;
      spec.group = 4;
      spec.sequences = {{100, 300}, {1, 2500}, {33, 33}, {1, 1}};
      ExpectSameBits(spec, isa);
    }
  }
}

TEST(AttentionDeterminismTest, RandomShapes) {
  constexpr uint64_t kSeeds = kSanitized ? 30 : 100;
  for (uint64_t seed = 100'000; seed < 100'000 + kSeeds; ++seed) {
    const AttentionSpec spec = RandomSpec(seed);
    if (!spec.sequences.empty()) ExpectSameBits(spec, Isa::kAuto);
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing
