// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/vector_ops.h"

#include <algorithm>
#include <cmath>

#include "paged_kv/check.h"

namespace paged_kv::llm {
namespace {

// Starting a task costs about as much as this many values.
constexpr size_t kTaskValues = 4096;

// Four sums side by side, so that additions need not wait for each other.
double SumOfSquares(const float* x, size_t n) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] += double{x[i + j]} * double{x[i + j]};
    }
  }
  for (; i < n; ++i) sums[0] += double{x[i]} * double{x[i]};
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

void RmsNorm(absl::Span<const float> x, absl::Span<const float> weight,
             float epsilon, absl::Span<float> out,
             attention::ParallelFor& parallel) {
  const size_t n = weight.size();
  const size_t rows = x.size() / n;
  PAGED_KV_CHECK(out.size() == x.size());
  const size_t rows_per_task = std::max<size_t>(1, kTaskValues / n);
  const auto normalise = [&](size_t task, size_t) {
    const size_t end = std::min(rows, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) {
      const float* source = x.data() + row * n;
      float* target = out.data() + row * n;
      const double mean = SumOfSquares(source, n) / static_cast<double>(n);
      const auto factor =
          static_cast<float>(1.0 / std::sqrt(mean + double{epsilon}));
      for (size_t i = 0; i < n; ++i) target[i] = source[i] * factor * weight[i];
    }
  };
  parallel.Run((rows + rows_per_task - 1) / rows_per_task, normalise);
}

void SwiGlu(absl::Span<const float> gate_up, size_t n, absl::Span<float> out,
            attention::ParallelFor& parallel) {
  PAGED_KV_CHECK(gate_up.size() == 2 * out.size());
  const auto combine = [&](size_t task, size_t) {
    const size_t end = std::min(out.size(), (task + 1) * kTaskValues);
    for (size_t i = task * kTaskValues; i < end;) {
      const size_t row = i / n;
      const size_t row_end = std::min(end, (row + 1) * n);
      const float* gate = gate_up.data() + row * n;  // row 2 * row, at i
      for (; i < row_end; ++i) {
        out[i] = gate[i] / (1.0F + std::exp(-gate[i])) * gate[i + n];
      }
    }
  };
  parallel.Run((out.size() + kTaskValues - 1) / kTaskValues, combine);
}

void AddTo(absl::Span<float> x, absl::Span<const float> y) {
  PAGED_KV_CHECK(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace paged_kv::llm
