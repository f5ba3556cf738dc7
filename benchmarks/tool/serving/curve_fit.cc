// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/curve_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

// Solves the symmetric system `a` c = b by elimination with pivots.
std::vector<double> Solve(std::vector<std::vector<double>> a,
                          std::vector<double> b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (size_t i = column; i < n; ++i) a[row][i] -= factor * a[column][i];
      b[row] -= factor * b[column];
    }
  }
  for (size_t i = 0; i < n; ++i) b[i] /= a[i][i];
  return b;
}

double RSquared(const Polynomial& fit, const std::vector<double>& x,
                const std::vector<double>& y) {
  double mean = 0;
  for (const double value : y) mean += value / static_cast<double>(y.size());
  double residual = 0, total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    residual += std::pow(y[i] - fit.At(x[i]), 2);
    total += std::pow(y[i] - mean, 2);
  }
  return total > 0 ? 1 - residual / total : 0;
}

}  // namespace

double Polynomial::At(double x) const {
  double value = 0;
  for (size_t i = coefficients.size(); i-- > 0;) {
    value = value * x + coefficients[i];
  }
  return value;
}

double Polynomial::Share(size_t degree, double x) const {
  const double all = At(x);
  if (degree >= coefficients.size() || all == 0) return 0;
  return coefficients[degree] * std::pow(x, static_cast<double>(degree)) / all;
}

absl::optional<Polynomial> FitPolynomial(const std::vector<double>& x,
                                         const std::vector<double>& y,
                                         size_t degree) {
  PAGED_KV_CHECK(x.size() == y.size());
  if (std::set<double>(x.begin(), x.end()).size() <= degree) return {};
  if (*std::max_element(y.begin(), y.end()) ==
      *std::min_element(y.begin(), y.end())) {
    return {};
  }
  // Normal equations in x / largest, so that powers stay comparable.
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  const size_t n = degree + 1;
  std::vector<std::vector<double>> a(n, std::vector<double>(n, 0.0));
  std::vector<double> b(n, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t row = 0; row < n; ++row) {
      const double power = std::pow(x[i] / largest, static_cast<double>(row));
      b[row] += power * y[i];
      for (size_t column = 0; column < n; ++column) {
        a[row][column] +=
            power * std::pow(x[i] / largest, static_cast<double>(column));
      }
    }
  }
  Polynomial fit;
  fit.coefficients = Solve(std::move(a), std::move(b));
  for (size_t i = 0; i < n; ++i) {
    fit.coefficients[i] /= std::pow(largest, static_cast<double>(i));
  }
  fit.r_squared = RSquared(fit, x, y);
  return fit;
}

}  // namespace paged_kv::tool
