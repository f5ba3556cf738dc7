// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/vector_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "docs/examples/llm/engine/vector_ops.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "paged_kv/check.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::llm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;

// Highway's Exp() takes no more; the result is infinity already.
constexpr float kLargestExponent = 104.0F;

// Calls `function` with vectors of all sources and stores what it returns. The
// last values, too few for a vector, go through the same arithmetic, so that
// where a value stands does not show in its result.
template <class Function>
HWY_INLINE void Map(const float* a, const float* b, size_t n, float* out,
                    const Function& function) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(function(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d,
               out + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[2][HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(a + i, a + n, rest[0]);
  std::copy(b + i, b + n, rest[1]);
  hn::Store(function(d, hn::Load(d, rest[0]), hn::Load(d, rest[1])), d,
            rest[0]);
  std::copy_n(rest[0], n - i, out + i);
}

// Squares of f32 are exact in double precision.
double SumOfSquares(const float* x, size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const size_t lanes = hn::Lanes(d);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto first = hn::PromoteTo(d, hn::LoadU(half, x + i));
    const auto second = hn::PromoteTo(d, hn::LoadU(half, x + i + lanes));
    even = hn::MulAdd(first, first, even);
    odd = hn::MulAdd(second, second, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

void NormaliseRow(const float* x, const float* weight, size_t n, float epsilon,
                  float* out) {
  const double mean = SumOfSquares(x, n) / static_cast<double>(n);
  const auto factor =
      static_cast<float>(1.0 / std::sqrt(mean + double{epsilon}));
  Map(x, weight, n, out, [factor](F32 d, auto value, auto scale) HWY_ATTR {
    return hn::Mul(hn::Mul(value, hn::Set(d, factor)), scale);
  });
}

void SwiGluRow(const float* gate, const float* up, size_t n, float* out) {
  Map(gate, up, n, out, [](F32 d, auto z, auto factor) HWY_ATTR {
    const auto power =
        hn::Exp(d, hn::Min(hn::Neg(z), hn::Set(d, kLargestExponent)));
    return hn::Mul(hn::Div(z, hn::Add(hn::Set(d, 1.0F), power)), factor);
  });
}

void AddRow(float* x, const float* y, size_t n) {
  Map(x, y, n, x, [](F32, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

float Largest(const float* values, size_t n) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  float largest = -std::numeric_limits<float>::infinity();
  size_t i = 0;
  if (n >= 2 * lanes) {
    auto even = hn::LoadU(d, values), odd = hn::LoadU(d, values + lanes);
    for (i = 2 * lanes; i + 2 * lanes <= n; i += 2 * lanes) {
      even = hn::Max(even, hn::LoadU(d, values + i));
      odd = hn::Max(odd, hn::LoadU(d, values + i + lanes));
    }
    largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd)));
  }
  for (; i < n; ++i) largest = std::max(largest, values[i]);
  return largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::llm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace paged_kv::llm {
namespace {

HWY_EXPORT(NormaliseRow);
HWY_EXPORT(SwiGluRow);
HWY_EXPORT(AddRow);
HWY_EXPORT(Largest);

// Starting a task costs about as much as so many values.
constexpr size_t kCheapTaskValues = 16384;  // a few instructions for each
constexpr size_t kExpTaskValues = 4096;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

}  // namespace

void RmsNorm(absl::Span<const float> x, absl::Span<const float> weight,
             float epsilon, absl::Span<float> out,
             attention::ParallelFor& parallel) {
  const size_t n = weight.size();
  const size_t rows = x.size() / n;
  PAGED_KV_CHECK(out.size() == x.size());
  const size_t rows_per_task = std::max<size_t>(1, kCheapTaskValues / n);
  parallel.Run(CeilDiv(rows, rows_per_task), [&](size_t task, size_t) {
    const size_t end = std::min(rows, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) {
      HWY_DYNAMIC_DISPATCH(NormaliseRow)
      (x.data() + row * n, weight.data(), n, epsilon, out.data() + row * n);
    }
  });
}

void SwiGlu(absl::Span<const float> gate_up, size_t n, absl::Span<float> out,
            attention::ParallelFor& parallel) {
  PAGED_KV_CHECK(gate_up.size() == 2 * out.size());
  parallel.Run(CeilDiv(out.size(), kExpTaskValues), [&](size_t task, size_t) {
    const size_t end = std::min(out.size(), (task + 1) * kExpTaskValues);
    for (size_t i = task * kExpTaskValues; i < end;) {
      const size_t row = i / n;
      const size_t row_end = std::min(end, (row + 1) * n);
      const float* gate = gate_up.data() + row * n + i;  // row 2 * row
      HWY_DYNAMIC_DISPATCH(SwiGluRow)
      (gate, gate + n, row_end - i, out.data() + i);
      i = row_end;
    }
  });
}

void AddTo(absl::Span<float> x, absl::Span<const float> y,
           attention::ParallelFor& parallel) {
  PAGED_KV_CHECK(x.size() == y.size());
  parallel.Run(CeilDiv(x.size(), kCheapTaskValues), [&](size_t task, size_t) {
    const size_t begin = task * kCheapTaskValues;
    const size_t end = std::min(x.size(), begin + kCheapTaskValues);
    HWY_DYNAMIC_DISPATCH(AddRow)
    (x.data() + begin, y.data() + begin, end - begin);
  });
}

size_t IndexOfLargest(absl::Span<const float> values) {
  PAGED_KV_CHECK(!values.empty());
  const float largest =
      HWY_DYNAMIC_DISPATCH(Largest)(values.data(), values.size());
  const auto found = std::find(values.begin(), values.end(), largest);
  // Among values that are not numbers the largest may be none of them.
  if (found == values.end()) return 0;
  return static_cast<size_t>(found - values.begin());
}

}  // namespace paged_kv::llm

#endif  // HWY_ONCE
