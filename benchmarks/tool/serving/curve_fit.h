// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_CURVE_FIT_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_CURVE_FIT_H_

#include <cstddef>
#include <vector>

#include "absl/types/optional.h"

namespace paged_kv::tool {

// y = coefficients[0] + coefficients[1] x + coefficients[2] x^2 + ...
struct Polynomial {
  std::vector<double> coefficients;
  double r_squared = 0;  // share of the variance of y that it explains

  double At(double x) const;
  // Of the term of degree `degree` in the value at x.
  double Share(size_t degree, double x) const;
};

// The polynomial of that degree with the least sum of squared differences.
// Nothing if there are fewer different x than degree + 1, or y is constant.
// REQUIRES: x.size() == y.size().
absl::optional<Polynomial> FitPolynomial(const std::vector<double>& x,
                                         const std::vector<double>& y,
                                         size_t degree);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_CURVE_FIT_H_
