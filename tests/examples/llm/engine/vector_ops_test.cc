// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attention/parallel_for.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/examples/llm/engine/support/scoped_target.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Around every width of a vector, and beyond a task.
constexpr size_t kWidths[] = {1, 2, 3, 7, 15, 16, 17, 33, 63, 576, 5001};
constexpr size_t kRowCounts[] = {1, 2, 5, 40};

class VectorOpsTest : public testing::TestWithParam<int64_t> {
 protected:
  std::vector<float> Draw(size_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& value : values) {
      value = std::ldexp(normal(random_), int(random_() % 9) - 4);
    }
    return values;
  }

  const ScopedTarget target_{GetParam()};
  std::mt19937_64 random_{TestSeed(11)};
  attention::ThreadPool threads_{3};
};

absl::Span<const float> RowOf(const std::vector<float>& x, size_t row,
                              size_t n) {
  return absl::MakeConstSpan(x).subspan(row * n, n);
}

bool SameBits(absl::Span<const float> a, absl::Span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(VectorOpsTest, NormEqualsTheFormula) {
  constexpr float kEpsilon = 1e-5F;
  for (const size_t n : kWidths) {
    const std::vector<float> weight = Draw(n);
    for (const size_t rows : kRowCounts) {
      const std::vector<float> x = Draw(rows * n);
      std::vector<float> out(x.size(), NAN);
      RmsNorm(x, weight, kEpsilon, absl::MakeSpan(out), threads_);
      for (size_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (const float v : RowOf(x, row, n)) sum += double{v} * double{v};
        const double size =
            std::sqrt(sum / static_cast<double>(n) + double{kEpsilon});
        std::vector<float> alone(n, NAN);
        RmsNorm(RowOf(x, row, n), weight, kEpsilon, absl::MakeSpan(alone),
                threads_);
        ASSERT_TRUE(SameBits(alone, RowOf(out, row, n))) << rows << " x " << n;
        for (size_t i = 0; i < n; ++i) {
          const double wanted =
              double{x[row * n + i]} / size * double{weight[i]};
          ASSERT_NEAR(double{alone[i]}, wanted, std::abs(wanted) * 4e-7);
        }
      }
    }
  }
}

TEST_P(VectorOpsTest, SwiGluEqualsTheFormulaWhereverAValueStands) {
  for (const size_t n : kWidths) {
    for (const size_t rows : kRowCounts) {
      const std::vector<float> x = Draw(rows * 2 * n);
      std::vector<float> out(rows * n, NAN);
      SwiGlu(x, n, absl::MakeSpan(out), threads_);
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t at = i / n * 2 * n + i % n;
        const float pair[] = {x[at], x[at + n]};
        const double z = double{pair[0]};
        const double wanted = z / (1.0 + std::exp(-z)) * double{pair[1]};
        ASSERT_NEAR(double{out[i]}, wanted, std::abs(wanted) * 1e-6);
        float alone = NAN;
        SwiGlu(pair, 1, absl::MakeSpan(&alone, 1), threads_);
        ASSERT_TRUE(SameBits({&alone, 1}, {&out[i], 1})) << rows << " x " << n;
      }
    }
  }
}

TEST_P(VectorOpsTest, SwiGluOfGatesThatAreVeryLarge) {
  // Of gates to the far left nothing is left, however far.
  const float largest = std::numeric_limits<float>::max();
  for (const float z : {-88.5F, -104.0F, -105.0F, -1000.0F, -largest}) {
    float out = NAN;
    const float pair[] = {z, 1.0F};
    SwiGlu(pair, 1, absl::MakeSpan(&out, 1), threads_);
    EXPECT_NEAR(out, 0.0F, 1e-36F) << z;
  }
  for (const float z : {88.5F, 105.0F, 1e30F, kInfinity}) {
    float out = NAN;
    const float pair[] = {z, 1.0F};
    SwiGlu(pair, 1, absl::MakeSpan(&out, 1), threads_);
    EXPECT_EQ(out, z);
  }
  float out = 0;
  const float pair[] = {NAN, 1.0F};
  SwiGlu(pair, 1, absl::MakeSpan(&out, 1), threads_);
  EXPECT_TRUE(std::isnan(out));
}

TEST_P(VectorOpsTest, SumsAreThoseOfSingleValues) {
  for (const size_t n : {1, 7, 16, 1000, 40001}) {
    const std::vector<float> x = Draw(n), y = Draw(n);
    std::vector<float> sum = x;
    AddTo(absl::MakeSpan(sum), y, threads_);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], x[i] + y[i]) << n;
  }
}

TEST_P(VectorOpsTest, FindsTheFirstOfTheLargest) {
  for (const size_t n : kWidths) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values = Draw(n);
      // Half the rounds with equals.
      if (round % 2 == 0) {
        for (float& value : values) value = std::round(value / 8);
      }
      const auto wanted = static_cast<size_t>(
          std::max_element(values.begin(), values.end()) - values.begin());
      ASSERT_EQ(IndexOfLargest(values), wanted) << n;
    }
    for (size_t at = 0; at < n; ++at) {
      std::vector<float> values(n, -2.0F);
      values[at] = -1.0F;
      ASSERT_EQ(IndexOfLargest(values), at) << n;
    }
    EXPECT_EQ(IndexOfLargest(std::vector<float>(n, -kInfinity)), 0u);
    EXPECT_LT(IndexOfLargest(std::vector<float>(n, NAN)), n);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VectorOpsTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& instance) {
                           return std::string(hwy::TargetName(instance.param));
                         });

}  // namespace
}  // namespace paged_kv::llm
