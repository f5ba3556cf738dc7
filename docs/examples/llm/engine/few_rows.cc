// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/few_rows.h"

// Arrays of vectors need their size.
#include "docs/examples/llm/engine/fixed_vectors.h"  // before Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "docs/examples/llm/engine/few_rows.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "paged_kv/check.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace paged_kv::llm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using Vector = hn::Vec<F32>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kBlockVectors = kOutputBlock / kLanes;
// Sums of one row and vector that are formed side by side need a register each.
constexpr size_t kSumRegisters = HWY_TARGET <= HWY_AVX3 ? 16 : 8;
// How far ahead of its use a weight is asked for.
constexpr size_t kPrefetchBytes = 4096;
constexpr size_t kLineBytes = 64;

constexpr size_t VectorsAtOnce(size_t sums) {
  size_t vectors = kBlockVectors;
  while (vectors > 1 && vectors * sums > kSumRegisters) vectors /= 2;
  return vectors;
}

// Asks for `bytes` of weights, unless they are no longer ours to read.
HWY_INLINE void PrefetchAhead(const void* weights, size_t bytes,
                              const void* end) {
  const auto* line = static_cast<const char*>(weights) + kPrefetchBytes;
  if (line + bytes > static_cast<const char*>(end)) return;
  for (size_t i = 0; i < bytes; i += kLineBytes) hwy::Prefetch(line + i);
}

// Steps of a chain, each a weight of f32 or a pair of bf16.
struct F32Steps {
  using Weight = float;
  static constexpr size_t kInputs = 1;
  static constexpr size_t kSums = 1;

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Add(const float* weights, const float* x,
                             size_t x_stride,
                             Vector (&sums)[kRows][kVectors][kSums]) {
    const F32 d;
    for (size_t v = 0; v < kVectors; ++v) {
      const Vector w = hn::Load(d, weights + v * kLanes);
      for (size_t row = 0; row < kRows; ++row) {
        sums[row][v][0] =
            hn::MulAdd(hn::Set(d, x[row * x_stride]), w, sums[row][v][0]);
      }
    }
  }

  static HWY_INLINE Vector Total(const Vector (&sums)[kSums]) {
    return sums[0];
  }
};

struct Bf16Steps {
  using Weight = uint32_t;  // two of them
  static constexpr size_t kInputs = 2;
  static constexpr size_t kSums = 2;

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Add(const uint32_t* weights, const float* x,
                             size_t x_stride,
                             Vector (&sums)[kRows][kVectors][kSums]) {
    const F32 d;
    const U32 du;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto pair = hn::Load(du, weights + v * kLanes);
      const Vector even = hn::BitCast(d, hn::ShiftLeft<16>(pair));
      const Vector odd =
          hn::BitCast(d, hn::And(pair, hn::Set(du, 0xFFFF0000u)));
      for (size_t row = 0; row < kRows; ++row) {
        Vector(&sum)[kSums] = sums[row][v];
        const float* values = x + row * x_stride;
        sum[0] = hn::MulAdd(hn::Set(d, values[0]), even, sum[0]);
        sum[1] = hn::MulAdd(hn::Set(d, values[1]), odd, sum[1]);
      }
    }
  }

  static HWY_INLINE Vector Total(const Vector (&sums)[kSums]) {
    return hn::Add(sums[0], sums[1]);
  }
};

// Adds a chain of `steps` to kVectors vectors of y.
template <class Steps, size_t kRows, size_t kVectors, bool kPrefetch>
HWY_INLINE void AddChain(const typename Steps::Weight* weights, size_t steps,
                         const float* x, size_t x_stride, const void* end,
                         float* y) {
  const F32 d;
  Vector sums[kRows][kVectors][Steps::kSums];
  for (auto& row : sums) {
    for (auto& vector : row) {
      for (Vector& sum : vector) sum = hn::Zero(d);
    }
  }
  for (size_t step = 0; step < steps; ++step) {
    if (kPrefetch) {
      PrefetchAhead(weights, kOutputBlock * sizeof(*weights), end);
    }
    Steps::template Add<kRows, kVectors>(weights, x, x_stride, sums);
    weights += kOutputBlock;
    x += Steps::kInputs;
  }
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      float* const target = y + row * kOutputBlock + v * kLanes;
      hn::Store(hn::Add(hn::Load(d, target), Steps::Total(sums[row][v])), d,
                target);
    }
  }
}

template <class Steps, size_t kRows>
void MultiplyRows(const FewRows& product, const void* block, const void* end,
                  float* y) {
  constexpr size_t kVectors = VectorsAtOnce(kRows * Steps::kSums);
  constexpr size_t kColumns = kVectors * kLanes;
  const auto* weights = static_cast<const typename Steps::Weight*>(block);
  const size_t stride = PaddedInputs(product.inputs);
  HWY_ALIGN float sums[kRows * kOutputBlock] = {};
  for (size_t first = 0; first < product.inputs; first += product.chain) {
    const size_t inputs =
        std::min<size_t>(product.chain, product.inputs - first);
    const size_t steps = (inputs + Steps::kInputs - 1) / Steps::kInputs;
    const float* x = product.x + first;
    AddChain<Steps, kRows, kVectors, true>(weights, steps, x, stride, end,
                                           sums);
    // The first pass left the chain's weights in the first cache.
    for (size_t column = kColumns; column < kOutputBlock; column += kColumns) {
      AddChain<Steps, kRows, kVectors, false>(weights + column, steps, x,
                                              stride, end, sums + column);
    }
    weights += steps * kOutputBlock;
  }
  std::memcpy(y, sums, sizeof(sums));
}

template <class Steps>
void MultiplyAs(const FewRows& product, const void* weights, const void* end,
                float* y) {
  switch (product.rows) {
    case 1:
      return MultiplyRows<Steps, 1>(product, weights, end, y);
    case 2:
      return MultiplyRows<Steps, 2>(product, weights, end, y);
    case 3:
      return MultiplyRows<Steps, 3>(product, weights, end, y);
    case 4:
      return MultiplyRows<Steps, 4>(product, weights, end, y);
    case 5:
      return MultiplyRows<Steps, 5>(product, weights, end, y);
    case 6:
      return MultiplyRows<Steps, 6>(product, weights, end, y);
    case 7:
      return MultiplyRows<Steps, 7>(product, weights, end, y);
    case 8:
      return MultiplyRows<Steps, 8>(product, weights, end, y);
  }
}

void Multiply(const FewRows& product, const void* weights, const void* end,
              float* y) {
  if (product.type == WeightType::kF32) {
    return MultiplyAs<F32Steps>(product, weights, end, y);
  }
  MultiplyAs<Bf16Steps>(product, weights, end, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::llm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace paged_kv::llm {
namespace {

HWY_EXPORT(Multiply);

// While it lives, subnormal operands and results of this thread are zeros.
class SubnormalsAreZeros {
 public:
#if HWY_ARCH_X86
  SubnormalsAreZeros() : before_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZeros = 0x0040;
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZeros);
  }
  ~SubnormalsAreZeros() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
#else
  SubnormalsAreZeros() {}
  ~SubnormalsAreZeros() {}
#endif
};

}  // namespace

void MultiplyFewRows(const FewRows& product, const void* weights,
                     const void* end, float* y) {
  PAGED_KV_CHECK(product.rows >= 1 && product.rows <= kMaxFewRows);
  PAGED_KV_CHECK(product.chain > 0);
  if (product.type == WeightType::kF32) {
    return HWY_DYNAMIC_DISPATCH(Multiply)(product, weights, end, y);
  }
  PAGED_KV_CHECK(product.chain % 2 == 0);
  const SubnormalsAreZeros subnormals_are_zeros;
  HWY_DYNAMIC_DISPATCH(Multiply)(product, weights, end, y);
}

}  // namespace paged_kv::llm

#endif  // HWY_ONCE
