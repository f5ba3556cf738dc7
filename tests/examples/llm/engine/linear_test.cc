// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/linear.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attention/float_formats.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/split_bf16.h"
#include "docs/examples/llm/engine/tile_groups.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/examples/llm/engine/support/scoped_target.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

std::vector<float> RandomValues(size_t n, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// The values of a matrix, and the matrix of that type.
struct TestMatrix {
  Matrix matrix;
  std::vector<float> values;
};

TestMatrix MakeMatrix(WeightType type, uint32_t rows, uint32_t cols,
                      std::mt19937_64& random) {
  TestMatrix result;
  result.values = RandomValues(size_t{rows} * cols, random);
  result.matrix = {type, rows, cols, nullptr};
  if (type == WeightType::kF32) {
    auto data = std::make_shared<std::vector<float>>(result.values);
    result.matrix.data = {data, data->data()};
    return result;
  }
  auto data = std::make_shared<std::vector<uint16_t>>();
  for (float& value : result.values) {
    data->push_back(attention::F32ToBf16(value));
    value = attention::Bf16ToF32(data->back());
  }
  result.matrix.data = {data, data->data()};
  return result;
}

struct Shape {
  uint32_t inputs;
  std::vector<uint32_t> outputs;  // of the stacked matrices
};

class LinearTest : public testing::TestWithParam<WeightType> {
 protected:
  std::mt19937_64 random_{TestSeed(1)};
};

// Awkward sizes: odd, below and above a block of outputs, several slices.
const Shape kShapes[] = {{1, {1}},        {7, {5, 3}},        {64, {64}},
                         {56, {96, 32}},  {172, {64, 65, 1}}, {300, {1111}},
                         {576, {700, 9}}, {1536, {130}},      {4864, {130}}};

TEST_P(LinearTest, EqualsSumsInDoublePrecision) {
  attention::ThreadPool threads(2);
  LinearScratch scratch;
  for (const Shape& shape : kShapes) {
    std::vector<Matrix> matrices;
    std::vector<float> weights;
    for (const uint32_t rows : shape.outputs) {
      TestMatrix m = MakeMatrix(GetParam(), rows, shape.inputs, random_);
      matrices.push_back(m.matrix);
      weights.insert(weights.end(), m.values.begin(), m.values.end());
    }
    const size_t outputs = weights.size() / shape.inputs;
    const std::vector<float> bias = RandomValues(outputs, random_);
    for (const uint32_t parts : {0, 3}) {
      LinearOptions options;
      options.activation_parts = parts;
      const auto linear = Linear::Create(matrices, bias, options);
      ASSERT_TRUE(linear.ok()) << linear.status();
      ASSERT_EQ(linear->inputs(), shape.inputs);
      ASSERT_EQ(linear->outputs(), outputs);
      for (const size_t rows : {0, 1, 3, 4, 21, 64, 70}) {
        const std::vector<float> x = RandomValues(rows * shape.inputs, random_);
        std::vector<float> y(rows * outputs, NAN);
        linear->Run(x, absl::MakeSpan(y), scratch, threads);
        for (size_t i = 0; i < y.size(); ++i) {
          double sum = double{bias[i % outputs]}, size = std::abs(sum);
          for (size_t c = 0; c < shape.inputs; ++c) {
            const double term = double{x[i / outputs * shape.inputs + c]} *
                                double{weights[i % outputs * shape.inputs + c]};
            sum += term;
            size += std::abs(term);
          }
          // Each addition rounds by 2^-24 of what is there, at most all terms.
          ASSERT_NEAR(double{y[i]}, sum, size * 0x1p-20)
              << rows << " x " << shape.inputs << " -> " << outputs
              << ", parts " << parts;
        }
      }
    }
  }
}

TEST_P(LinearTest, GivesBackTheWeightsOfAnOutput) {
  for (const Shape& shape : kShapes) {
    std::vector<Matrix> matrices;
    std::vector<float> weights;
    for (const uint32_t rows : shape.outputs) {
      TestMatrix m = MakeMatrix(GetParam(), rows, shape.inputs, random_);
      matrices.push_back(m.matrix);
      weights.insert(weights.end(), m.values.begin(), m.values.end());
    }
    for (const uint32_t parts : {0, 2}) {
      LinearOptions options;
      options.activation_parts = parts;
      const auto linear = Linear::Create(matrices, {}, options);
      ASSERT_TRUE(linear.ok()) << linear.status();
      std::vector<float> got(weights.size(), NAN);
      for (uint32_t i = 0; i < linear->outputs(); ++i) {
        linear->Row(i, absl::MakeSpan(got).subspan(size_t{i} * shape.inputs,
                                                   shape.inputs));
      }
      ASSERT_EQ(got, weights) << linear->outputs() << " x " << shape.inputs;
    }
  }
}

// What makes answers independent of the batch: a row's bits do not depend on
// the rows beside it, on their number, or on the threads.
TEST_P(LinearTest, ARowsBitsDependOnTheRowAlone) {
  attention::SerialFor serial;
  attention::ThreadPool threads(5);
  for (const Shape& shape : kShapes) {
    for (const uint32_t parts : {0, 1, 2, 3}) {
      std::vector<Matrix> matrices;
      for (const uint32_t rows : shape.outputs) {
        matrices.push_back(
            MakeMatrix(GetParam(), rows, shape.inputs, random_).matrix);
      }
      LinearOptions options;
      options.activation_parts = parts;
      const auto linear = Linear::Create(matrices, {}, options);
      ASSERT_TRUE(linear.ok()) << linear.status();
      const size_t outputs = linear->outputs();
      constexpr size_t kRows = 129;
      const std::vector<float> x = RandomValues(kRows * shape.inputs, random_);
      std::vector<float> alone(kRows * outputs);
      LinearScratch scratch;
      for (size_t row = 0; row < kRows; ++row) {
        linear->Run(
            absl::MakeConstSpan(x).subspan(row * shape.inputs, shape.inputs),
            absl::MakeSpan(alone).subspan(row * outputs, outputs), scratch,
            serial);
      }
      for (const size_t rows : {2, 5, 16, 22, 33, 70, 97, 128, 129}) {
        const size_t first = kRows - rows;
        std::vector<float> y(rows * outputs);
        linear->Run(absl::MakeConstSpan(x).subspan(first * shape.inputs),
                    absl::MakeSpan(y), scratch, threads);
        ASSERT_EQ(std::memcmp(y.data(), alone.data() + first * outputs,
                              y.size() * sizeof(float)),
                  0)
            << rows << " rows of " << shape.inputs << " -> " << outputs
            << ", parts " << parts;
      }
    }
  }
}

TEST_P(LinearTest, RefusesWhatDoesNotFitTogether) {
  const Matrix a = MakeMatrix(GetParam(), 4, 8, random_).matrix;
  const Matrix narrow = MakeMatrix(GetParam(), 4, 7, random_).matrix;
  EXPECT_FALSE(Linear::Create({}, {}, {}).ok());
  EXPECT_FALSE(Linear::Create({a, narrow}, {}, {}).ok());
  EXPECT_FALSE(Linear::Create({a}, {1, 2, 3}, {}).ok());
  LinearOptions options;
  options.activation_parts = 4;
  EXPECT_FALSE(Linear::Create({a}, {}, options).ok());
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTest,
                         testing::Values(WeightType::kF32, WeightType::kBf16),
                         [](const auto& instance) {
                           return WeightTypeName(instance.param);
                         });

std::vector<float> RandomValuesOfManySizes(size_t n, std::mt19937_64& random) {
  std::vector<float> values = RandomValues(n, random);
  for (float& value : values) value *= std::exp2(float(random() % 60) - 30);
  return values;
}

class SplitBf16Test : public testing::TestWithParam<int64_t> {
 protected:
  const ScopedTarget target_{GetParam()};
  std::mt19937_64 random_{TestSeed(2)};
};

TEST_P(SplitBf16Test, PartsAddUpToTheValue) {
  std::vector<float> values = RandomValuesOfManySizes(1000, random_);
  values.insert(values.end(), {0.0F, -0.0F, 1.0F, 0x1.fffffep0F, -3e38F});
  for (const uint32_t parts : {1, 2, 3}) {
    std::vector<uint16_t> split(parts * values.size());
    SplitIntoBf16(values, parts, split.data());
    for (size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (uint32_t part = 0; part < parts; ++part) {
        sum += double{attention::Bf16ToF32(split[part * values.size() + i])};
      }
      const double limit =
          std::abs(double{values[i]}) * std::exp2(-8.0 * parts);
      EXPECT_NEAR(sum, double{values[i]}, limit) << parts << " parts";
    }
  }
}

// Around every width of a vector, and of the rows of a tile.
constexpr size_t kSplitSizes[] = {1, 7, 15, 16, 31, 32, 33, 64, 65, 576};

TEST_P(SplitBf16Test, GroupsOfTilesHoldThemWithZerosBehind) {
  attention::ThreadPool threads(3);
  for (const size_t n : kSplitSizes) {
    for (const uint32_t parts : {1, 2, 3}) {
      for (const size_t rows : {0, 1, 9, 16, 17, 33, 45}) {
        const std::vector<float> x = RandomValuesOfManySizes(rows * n, random_);
        const TileGroups groups = {rows, static_cast<uint32_t>(n), parts};
        std::vector<uint16_t> out(groups.size(), 0x7FC0);  // NaN
        SplitIntoGroups(groups, x, out.data(), threads);
        std::vector<uint16_t> split(parts * n);
        for (size_t row = 0; row < rows; ++row) {
          SplitIntoBf16(absl::MakeConstSpan(x).subspan(row * n, n), parts,
                        split.data());
          const size_t per_group = 32 / parts, first = row - row % per_group;
          const size_t in_group = std::min(per_group, rows - first);
          const size_t tiles = (in_group * parts + 15) / 16;
          for (size_t part = 0; part < parts; ++part) {
            const size_t product_row = part * in_group + row % per_group;
            for (size_t i = 0; i < (n + 31) / 32 * 32; ++i) {
              const size_t at = groups.Offset(row / per_group) +
                                i / 32 * tiles * 512 + product_row * 32 +
                                i % 32;
              ASSERT_LT(at, out.size());
              ASSERT_EQ(out[at], i < n ? split[part * n + i] : 0)
                  << rows << " rows of " << n << ", " << parts << " parts";
            }
          }
        }
      }
    }
  }
}

TEST_P(SplitBf16Test, JoinsPartsInTheirOrder) {
  for (const size_t n : kSplitSizes) {
    const size_t stride = n + 5;
    const std::vector<float> products =
        RandomValuesOfManySizes(3 * stride, random_);
    const std::vector<float> bias = RandomValuesOfManySizes(n, random_);
    for (const uint32_t parts : {1, 2, 3}) {
      for (const bool biased : {false, true}) {
        std::vector<float> y(n, NAN);
        JoinParts(products.data(), stride, parts,
                  biased ? bias.data() : nullptr, absl::MakeSpan(y));
        for (size_t i = 0; i < n; ++i) {
          float sum = products[i];
          for (size_t p = 1; p < parts; ++p) sum += products[p * stride + i];
          if (biased) sum += bias[i];
          ASSERT_EQ(y[i], sum) << parts << " parts of " << n;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SplitBf16Test,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& instance) {
                           return std::string(hwy::TargetName(instance.param));
                         });

}  // namespace
}  // namespace paged_kv::llm
