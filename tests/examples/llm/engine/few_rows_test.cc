// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/few_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "attention/float_formats.h"
#include "docs/examples/llm/engine/tile_rows.h"
#include "gtest/gtest.h"
#include "hwy/aligned_allocator.h"
#include "hwy/targets.h"
#include "tests/examples/llm/engine/support/scoped_target.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

constexpr uint32_t kInputs[] = {1, 2, 7, 63, 64, 65, 576, 1536};

bool Fuses(int64_t target) {
#if HWY_ARCH_X86
  return target <= HWY_AVX2;  // better ones have lower bits
#else
  return target != HWY_SCALAR && target != HWY_EMU128;
#endif
}

// Weights of a block and rows, and how they are packed.
struct Problem {
  WeightType type = WeightType::kF32;
  uint32_t inputs = 0;
  uint32_t rows = 0;
  std::vector<float> weights;  // [kOutputBlock, inputs]
  std::vector<float> x;        // [rows, PaddedInputs(inputs)]
  hwy::AlignedFreeUniquePtr<std::byte[]> packed;
  size_t packed_bytes = 0;

  float weight(uint32_t output, uint32_t input) const {
    return weights[size_t{output} * inputs + input];
  }
  float value(uint32_t row, uint32_t input) const {
    return x[row * PaddedInputs(inputs) + input];
  }
};

void Pack(Problem* problem) {
  const bool pairs = problem->type == WeightType::kBf16;
  problem->packed_bytes =
      (pairs ? PaddedInputs(problem->inputs) : problem->inputs) * kOutputBlock *
      WeightTypeBytes(problem->type);
  problem->packed = hwy::AllocateAligned<std::byte>(problem->packed_bytes);
  std::memset(problem->packed.get(), 0, problem->packed_bytes);
  for (uint32_t n = 0; n < kOutputBlock; ++n) {
    for (uint32_t k = 0; k < problem->inputs; ++k) {
      const float weight = problem->weight(n, k);
      if (pairs) {
        const uint16_t bits = attention::F32ToBf16(weight);
        std::memcpy(problem->packed.get() +
                        (k / 2 * 2 * kOutputBlock + n * 2 + k % 2) * 2,
                    &bits, sizeof(bits));
      } else {
        std::memcpy(problem->packed.get() + (k * kOutputBlock + n) * 4, &weight,
                    sizeof(weight));
      }
    }
  }
}

// Rows that tiles can multiply are of bf16.
Problem MakeProblem(WeightType type, uint32_t inputs, uint32_t rows,
                    std::mt19937_64& random, bool bf16_rows = false) {
  Problem problem;
  problem.type = type;
  problem.inputs = inputs;
  problem.rows = rows;
  std::normal_distribution<float> normal;
  const auto draw = [&](bool is_bf16) {
    const float value = std::ldexp(normal(random), int(random() % 16) - 8);
    return is_bf16 ? attention::Bf16ToF32(attention::F32ToBf16(value)) : value;
  };
  for (size_t i = 0; i < size_t{inputs} * kOutputBlock; ++i) {
    problem.weights.push_back(draw(type == WeightType::kBf16));
  }
  problem.x.resize(rows * PaddedInputs(inputs));
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t k = 0; k < inputs; ++k) {
      problem.x[row * PaddedInputs(inputs) + k] = draw(bf16_rows);
    }
  }
  Pack(&problem);
  return problem;
}

std::vector<float> Multiply(const Problem& problem, uint32_t chain) {
  std::vector<float> y(size_t{problem.rows} * kOutputBlock, NAN);
  const std::byte* const weights = problem.packed.get();
  MultiplyFewRows(
      {problem.type, problem.inputs, chain, problem.rows, problem.x.data()},
      weights, weights, kOutputBlock, y.data());
  return y;
}

// Outputs of the first or second half of the block, [rows, kOutputBlock].
std::vector<float> MultiplyHalf(const Problem& problem, uint32_t chain,
                                uint32_t half) {
  std::vector<float> y(size_t{problem.rows} * kOutputBlock, NAN);
  const std::byte* const weights = problem.packed.get() + half * kHalfStepBytes;
  MultiplyFewRows(
      {problem.type, problem.inputs, chain, problem.rows, problem.x.data()},
      weights, weights, kHalfBlock, y.data());
  return y;
}

// What MultiplyHalf() gives, of all outputs of a block.
std::vector<float> Half(const std::vector<float>& y, uint32_t half) {
  std::vector<float> result(y.size());
  for (size_t i = 0; i < y.size(); i += kOutputBlock) {
    std::copy_n(y.begin() + i + half * kHalfBlock, kHalfBlock,
                result.begin() + i);
  }
  return result;
}

// Adds a product, fused or not.
float AddProduct(float x, float weight, float sum, bool fuses) {
  if (fuses) return std::fma(x, weight, sum);
  const volatile float product = x * weight;
  return sum + product;
}

// The sum as the header describes it, a number at a time.
float ReferenceSum(const Problem& problem, uint32_t row, uint32_t output,
                   uint32_t chain, bool fuses) {
  float total = 0;
  for (uint32_t first = 0; first < problem.inputs; first += chain) {
    float sum = 0;
    for (uint32_t k = first; k < std::min(first + chain, problem.inputs); ++k) {
      sum = AddProduct(problem.value(row, k), problem.weight(output, k), sum,
                       fuses);
    }
    total += sum;
  }
  return total;
}

class FewRowsTest : public testing::TestWithParam<WeightType> {
 protected:
  // Below, at and above what one pass over the rows takes.
  std::vector<uint32_t> Chains(uint32_t inputs) const {
    return {32, 64, 512, 70, inputs + inputs % 2};
  }

  std::mt19937_64 random_{TestSeed(1)};
};

TEST_P(FewRowsTest, FormsSumsAsDescribedOnEveryTarget) {
  for (const uint32_t inputs : kInputs) {
    for (uint32_t rows = 1; rows <= kMaxFewRows; ++rows) {
      const Problem problem = MakeProblem(GetParam(), inputs, rows, random_);
      const std::vector<uint32_t> chains = Chains(inputs);
      const uint32_t chain = chains[rows % chains.size()];
      std::vector<float> expected[2];  // without and with fused operations
      for (const bool fuses : {false, true}) {
        for (uint32_t i = 0; i < rows * kOutputBlock; ++i) {
          expected[fuses].push_back(ReferenceSum(
              problem, i / kOutputBlock, i % kOutputBlock, chain, fuses));
        }
      }
      for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        const ScopedTarget scoped(target);
        const std::vector<float>& sums = expected[Fuses(target)];
        ASSERT_EQ(Multiply(problem, chain), sums)
            << rows << " rows of " << inputs << ", chains of " << chain;
        for (const uint32_t half : {0u, 1u}) {
          ASSERT_EQ(MultiplyHalf(problem, chain, half), Half(sums, half))
              << "half " << half << " of " << rows << " rows of " << inputs
              << ", chains of " << chain;
        }
      }
    }
  }
}

TEST_P(FewRowsTest, IsCloseToSumsInDoublePrecision) {
  for (const uint32_t inputs : kInputs) {
    for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u}) {
      const Problem problem = MakeProblem(GetParam(), inputs, rows, random_);
      for (const uint32_t chain : Chains(inputs)) {
        const std::vector<float> y = Multiply(problem, chain);
        for (uint32_t i = 0; i < rows * kOutputBlock; ++i) {
          double sum = 0, size = 0;
          for (uint32_t k = 0; k < inputs; ++k) {
            const double term = double{problem.value(i / kOutputBlock, k)} *
                                double{problem.weight(i % kOutputBlock, k)};
            sum += term;
            size += std::abs(term);
          }
          // Each of 1,536 additions rounds by 2^-25 of what is there.
          ASSERT_NEAR(double{y[i]}, sum, size * 0x1p-18)
              << rows << " rows of " << inputs << ", chains of " << chain;
        }
      }
    }
  }
}

TEST(WidenBlockTest, GivesTheSameNumbersOnEveryTarget) {
  std::mt19937_64 random(TestSeed(3));
  for (const uint32_t inputs : {2u, 16u, 576u}) {
    const Problem problem = MakeProblem(WeightType::kBf16, inputs, 1, random);
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ScopedTarget scoped(target);
      const auto wide =
          hwy::AllocateAligned<float>(size_t{inputs} * kOutputBlock);
      WidenBlock(problem.packed.get(), inputs, wide.get());
      for (uint32_t i = 0; i < inputs * kOutputBlock; ++i) {
        ASSERT_EQ(wide[i], problem.weight(i % kOutputBlock, i / kOutputBlock))
            << inputs << " inputs, number " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FewRowsTest,
                         testing::Values(WeightType::kF32, WeightType::kBf16),
                         [](const auto& instance) {
                           return WeightTypeName(instance.param);
                         });

std::vector<float> MultiplyByTiles(const Problem& problem) {
  const TileLayout layout = {problem.inputs, problem.rows};
  // What lies behind the rows of a tile is read by nobody.
  std::vector<uint16_t> x(layout.size(), attention::F32ToBf16(NAN));
  for (uint32_t row = 0; row < problem.rows; ++row) {
    for (uint32_t k = 0; k < PaddedInputs(problem.inputs); ++k) {
      x[layout.RowOffset(row) + k / 32 * layout.stride() + k % 32] =
          attention::F32ToBf16(problem.value(row, k));
    }
  }
  std::vector<float> y(size_t{problem.rows} * kOutputBlock, NAN);
  const std::byte* const weights = problem.packed.get();
  MultiplyTileRows({layout, x.data()}, weights, weights + problem.packed_bytes,
                   y.data());
  return y;
}

// How tiles add up: in chains of 32, each the sums of its even and of its odd
// inputs (TDPBF16PS in Intel's instruction set reference).
float ReferenceTileSum(const Problem& problem, uint32_t row, uint32_t output) {
  constexpr uint32_t kChain = 32;
  float total = 0;
  for (uint32_t first = 0; first < problem.inputs; first += kChain) {
    float sums[2] = {0, 0};
    for (uint32_t k = first; k < std::min(first + kChain, problem.inputs);
         ++k) {
      sums[k % 2] = std::fma(problem.value(row, k), problem.weight(output, k),
                             sums[k % 2]);
    }
    total += sums[0] + sums[1];
  }
  return total;
}

TEST(TileRowsTest, AddUpAsTheInstructionDoes) {
  if (!CanMultiplyTileRows()) GTEST_SKIP() << "no AMX tiles here";
  std::mt19937_64 random(TestSeed(2));
  for (const uint32_t inputs : kInputs) {
    for (uint32_t rows = 1; rows <= kMaxTileRows; ++rows) {
      const Problem problem =
          MakeProblem(WeightType::kBf16, inputs, rows, random, true);
      std::vector<float> expected;
      for (uint32_t i = 0; i < rows * kOutputBlock; ++i) {
        expected.push_back(
            ReferenceTileSum(problem, i / kOutputBlock, i % kOutputBlock));
      }
      ASSERT_EQ(MultiplyByTiles(problem), expected)
          << rows << " rows of " << inputs;
    }
  }
}

}  // namespace
}  // namespace paged_kv::llm
