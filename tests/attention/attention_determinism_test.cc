// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The same bits for any number of threads, any order of tasks, and however many
// rows are computed together.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/paged_decode.h"
#include "attention/paged_prefill.h"
#include "gtest/gtest.h"
#include "tests/support/attention_environment.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random.h"
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

// Queries begin .. end - 1 of a problem of one whole prompt, by themselves.
AttentionResult RunChunk(const AttentionProblem& problem, Isa isa,
                         uint32_t begin, uint32_t end) {
  AttentionInputs inputs = problem.inputs();
  const uint32_t block = problem.spec().shape.block_tokens;
  const auto pages = static_cast<int32_t>((end + block - 1) / block);
  const std::vector<int32_t> indptr = {0, pages};
  const std::vector<int32_t> last = {
      static_cast<int32_t>((end - 1) % block + 1)};
  inputs.table.indptr = indptr;
  inputs.table.page_indices = inputs.table.page_indices.first(pages);
  inputs.table.last_page_tokens = last;
  const size_t rows = size_t{end - begin} * inputs.query_heads;
  const size_t row_floats = inputs.pages.shape.head_dim;
  inputs.q = inputs.q.subspan(begin * inputs.query_heads * row_floats,
                              rows * row_floats);
  AttentionOptions options = problem.spec().options;
  options.isa = isa;
  AttentionResult result;
  result.out.resize(rows * inputs.pages.shape.VHeadDim());
  result.lse.resize(rows);
  const AttentionOutputs outputs{absl::MakeSpan(result.out),
                                 absl::MakeSpan(result.lse)};
  const std::vector<int32_t> qo_indptr = {0, static_cast<int32_t>(end - begin)};
  SerialFor serial;
  const absl::Status status =
      end - begin == 1
          ? PagedDecode(inputs, options, outputs, serial)
          : PagedPrefill(inputs, qo_indptr, options, outputs, serial);
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

// Cuts a prompt into chunks at random, single tokens often among them.
void ExpectSameBitsInChunks(const AttentionSpec& spec, Isa isa,
                            Random* random) {
  SCOPED_TRACE(ToString(spec));
  const AttentionProblem problem(spec);
  const uint32_t tokens = spec.sequences[0].tokens;
  const AttentionResult whole = RunChunk(problem, isa, 0, tokens);
  const size_t heads = size_t{spec.group} * spec.shape.kv_heads;
  for (uint32_t begin = 0; begin < tokens;) {
    const uint32_t most =
        random->Chance(50) ? 1 : random->Pick({4u, 20u, 200u});
    const uint32_t end = std::min(tokens, begin + random->Between(1, most));
    const AttentionResult chunk = RunChunk(problem, isa, begin, end);
    const size_t row = begin * heads;
    ASSERT_EQ(std::memcmp(chunk.out.data(),
                          whole.out.data() + row * spec.shape.VHeadDim(),
                          chunk.out.size() * sizeof(float)),
              0)
        << "tokens " << begin << " to " << end - 1;
    ASSERT_EQ(std::memcmp(chunk.lse.data(), whole.lse.data() + row,
                          chunk.lse.size() * sizeof(float)),
              0)
        << "tokens " << begin << " to " << end - 1;
    begin = end;
  }
}

// As long as keys are not split. Tiles are left to many rows, AVX2 forms two
// sums by turns for 5 to 7 rows, and bytes are multiplied by their scales
// before or after the product.
TEST(AttentionDeterminismTest, ARowHasTheSameBitsInAnyChunk) {
  const uint64_t first_seed = EnvironmentNumber("PAGED_KV_TEST_SEED", 1);
  constexpr uint64_t kSeeds = kSanitized ? 10 : 60;
  for (uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("PAGED_KV_TEST_SEED=", seed));
    Random random(seed);
    AttentionSpec spec;
    spec.seed = seed;
    spec.shape.dtype = random.Pick({DType::kF32, DType::kF16, DType::kBF16});
    spec.shape.kv_heads = random.Between(1, 2);
    spec.shape.head_dim = 8 * random.Between(1, 32);
    spec.shape.v_head_dim = random.Chance(50) ? 0 : 8 * random.Between(1, 32);
    spec.shape.block_tokens = random.Pick({16u, 32u, 128u});
    spec.group = random.Between(1, 9);
    const uint32_t tokens = random.Between(1, 300);
    spec.sequences = {{tokens, tokens}};
    for (const Isa isa : SupportedIsas()) {
      if (isa == Isa::kAmxBf16 || isa == Isa::kAvx2) continue;
      ExpectSameBitsInChunks(spec, isa, &random);
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing
