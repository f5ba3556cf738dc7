// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/curve_fit.h"

#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

TEST(CurveFitTest, FindsAPolynomialAgain) {
  std::vector<double> x, y;
  for (const double n : {10.0, 700.0, 1000.0, 2000.0, 4000.0, 8000.0}) {
    x.push_back(n);
    y.push_back(0.25 + 3e-4 * n + 2e-8 * n * n);
  }
  const auto fit = FitPolynomial(x, y, 2);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->coefficients[0], 0.25, 1e-9);
  EXPECT_NEAR(fit->coefficients[1], 3e-4, 1e-12);
  EXPECT_NEAR(fit->coefficients[2], 2e-8, 1e-15);
  EXPECT_NEAR(fit->r_squared, 1, 1e-12);
  EXPECT_NEAR(fit->Share(2, 8000), 1.28 / (0.25 + 2.4 + 1.28), 1e-9);
}

TEST(CurveFitTest, MinimisesSquaresAndSaysHowWellItFits) {
  // Mean 3, slope 1 by hand; residuals 1, -2, 1 of squares 6, total 8.
  const auto fit = FitPolynomial({1, 2, 3}, {3, 1, 5}, 1);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->coefficients[0], 1, 1e-12);
  EXPECT_NEAR(fit->coefficients[1], 1, 1e-12);
  EXPECT_NEAR(fit->r_squared, 1 - 6.0 / 8.0, 1e-12);
}

TEST(CurveFitTest, GivesNothingWhereTheDataDoNotSay) {
  EXPECT_FALSE(FitPolynomial({}, {}, 0).has_value());
  EXPECT_FALSE(FitPolynomial({1, 2}, {3, 4}, 2).has_value());
  EXPECT_FALSE(FitPolynomial({5, 5, 5}, {3, 4, 6}, 1).has_value());
  EXPECT_FALSE(FitPolynomial({1, 2, 3}, {4, 4, 4}, 1).has_value());
}

}  // namespace
}  // namespace paged_kv::tool
