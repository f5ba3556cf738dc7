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

#include "paged_kv/check.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::llm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using Vector = hn::Vec<F32>;

constexpr size_t kLanes = HWY_LANES(float);
// Sums of one row and vector that are formed side by side need a register each.
constexpr size_t kSumRegisters = HWY_TARGET <= HWY_AVX3 ? 16 : 8;
constexpr size_t kRowsAtOnce = 8;
// Weights stay in the first cache while all rows and outputs pass by.
constexpr size_t kStepsAtOnce = 32;
constexpr size_t kLineBytes = 64;
// Where prefetched weights go, as GCC's builtin names it. The second cache has
// more requests under way at a time than the first.
constexpr int kSecondCache = 2;

// Of `outputs` outputs.
constexpr size_t VectorsAtOnce(size_t rows, size_t outputs) {
  size_t vectors = outputs / kLanes;
  while (vectors > 1 && vectors * rows > kSumRegisters) vectors /= 2;
  return vectors;
}

// Asks for as many steps of weights as are in use, spread evenly over the work
// with these: the memory never rests, and no pass waits for it.
class Ahead {
 public:
  // Of the weights of `outputs` outputs. Null: for none.
  Ahead(const void* weights, size_t outputs, size_t passes)
      : weights_(static_cast<const char*>(weights)),
        half_step_mask_(outputs == kOutputBlock ? 0 : ~(kHalfStepBytes - 1)),
        bytes_(weights == nullptr ? 0 : outputs * sizeof(float) / passes) {}

  HWY_INLINE void Step() {
    for (size_t i = 0; i < bytes_; i += kLineBytes) {
      const size_t at = position_ + i;
      __builtin_prefetch(weights_ + at + (at & half_step_mask_), /*write=*/0,
                         kSecondCache);
    }
    position_ += bytes_;
  }

 private:
  const char* const weights_;
  // Rounds down to whole half steps: as much again lies between them.
  const size_t half_step_mask_;
  const size_t bytes_;  // per step
  size_t position_ = 0;
};

// Steps of a sum, each a weight of f32 or a pair of bf16.
struct F32Steps {
  using Weight = float;
  static constexpr size_t kInputs = 1;

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Add(const float* weights, const float* x,
                             size_t x_stride, Vector (&sums)[kRows][kVectors]) {
    const F32 d;
    for (size_t v = 0; v < kVectors; ++v) {
      const Vector w = hn::Load(d, weights + v * kLanes);
      for (size_t row = 0; row < kRows; ++row) {
        sums[row][v] =
            hn::MulAdd(hn::Set(d, x[row * x_stride]), w, sums[row][v]);
      }
    }
  }
};

// Weights of two inputs, as f32.
struct Pair {
  Vector even, odd;
};

HWY_INLINE Pair LoadPair(const uint32_t* weights) {
  const F32 d;
  const U32 du;
  const auto pair = hn::Load(du, weights);
  return {hn::BitCast(d, hn::ShiftLeft<16>(pair)),
          hn::BitCast(d, hn::And(pair, hn::Set(du, 0xFFFF0000u)))};
}

struct Bf16Steps {
  using Weight = uint32_t;  // two of them
  static constexpr size_t kInputs = 2;

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Add(const uint32_t* weights, const float* x,
                             size_t x_stride, Vector (&sums)[kRows][kVectors]) {
    const F32 d;
    for (size_t v = 0; v < kVectors; ++v) {
      const Pair pair = LoadPair(weights + v * kLanes);
      for (size_t row = 0; row < kRows; ++row) {
        const float* values = x + row * x_stride;
        Vector& sum = sums[row][v];
        sum = hn::MulAdd(hn::Set(d, values[0]), pair.even, sum);
        sum = hn::MulAdd(hn::Set(d, values[1]), pair.odd, sum);
      }
    }
  }
};

// Continues kVectors vectors of the sums of kRows rows.
template <class Steps, size_t kRows, size_t kVectors>
HWY_INLINE void AddSteps(const typename Steps::Weight* weights, size_t steps,
                         const float* x, size_t x_stride, Ahead& ahead,
                         float* sums) {
  const F32 d;
  Vector held[kRows][kVectors];
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      held[row][v] = hn::Load(d, sums + row * kOutputBlock + v * kLanes);
    }
  }
  for (size_t step = 0; step < steps; ++step) {
    ahead.Step();
    Steps::template Add<kRows, kVectors>(weights, x, x_stride, held);
    weights += kOutputBlock;
    x += Steps::kInputs;
  }
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(held[row][v], d, sums + row * kOutputBlock + v * kLanes);
    }
  }
}

template <class Steps, size_t kRows, size_t kOutputs>
void AddToHalfOrAll(const typename Steps::Weight* weights, size_t steps,
                    const float* x, size_t x_stride, Ahead& ahead,
                    float* sums) {
  constexpr size_t kVectors = VectorsAtOnce(kRows, kOutputs);
  for (size_t i = 0; i < kOutputs; i += kVectors * kLanes) {
    AddSteps<Steps, kRows, kVectors>(weights + i, steps, x, x_stride, ahead,
                                     sums + i);
  }
}

template <class Steps, size_t kRows>
void AddToOutputs(const typename Steps::Weight* weights, size_t steps,
                  const float* x, size_t x_stride, size_t outputs, Ahead& ahead,
                  float* sums) {
  const auto add = outputs == kOutputBlock
                       ? AddToHalfOrAll<Steps, kRows, kOutputBlock>
                       : AddToHalfOrAll<Steps, kRows, kHalfBlock>;
  add(weights, steps, x, x_stride, ahead, sums);
}

template <class Steps>
void AddRows(size_t rows, const typename Steps::Weight* weights, size_t steps,
             const float* x, size_t x_stride, size_t outputs, Ahead& ahead,
             float* sums) {
  switch (rows) {
    case 1:
      return AddToOutputs<Steps, 1>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 2:
      return AddToOutputs<Steps, 2>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 3:
      return AddToOutputs<Steps, 3>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 4:
      return AddToOutputs<Steps, 4>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 5:
      return AddToOutputs<Steps, 5>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 6:
      return AddToOutputs<Steps, 6>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 7:
      return AddToOutputs<Steps, 7>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
    case 8:
      return AddToOutputs<Steps, 8>(weights, steps, x, x_stride, outputs, ahead,
                                    sums);
  }
}

template <class Steps>
void MultiplyAs(const FewRows& product, const void* block, const void* next,
                size_t outputs, float* y) {
  const F32 d;
  const auto* weights = static_cast<const typename Steps::Weight*>(block);
  const size_t stride = PaddedInputs(product.inputs);
  const size_t values = product.rows * kOutputBlock;
  // Groups of about the same size, so that none has few sums to form at a time.
  const size_t groups = (product.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  const auto group_begin = [&](size_t group) {
    return group * product.rows / groups;
  };
  const size_t passes =
      groups * (outputs / kLanes / VectorsAtOnce(group_begin(1), outputs));
  HWY_ALIGN float sums[kMaxFewRows * kOutputBlock];
  std::memset(y, 0, values * sizeof(float));
  for (size_t first = 0; first < product.inputs; first += product.chain) {
    const size_t chain_end =
        std::min<size_t>(first + product.chain, product.inputs);
    std::memset(sums, 0, values * sizeof(float));
    constexpr size_t kInputsAtOnce = kStepsAtOnce * Steps::kInputs;
    for (size_t input = first; input < chain_end; input += kInputsAtOnce) {
      const size_t inputs = std::min(kInputsAtOnce, chain_end - input);
      const size_t steps = (inputs + Steps::kInputs - 1) / Steps::kInputs;
      const auto* const behind = weights + steps * kOutputBlock;
      const bool is_last = input + inputs >= product.inputs;
      Ahead ahead(is_last ? next : behind, outputs, passes);
      for (size_t group = 0; group < groups; ++group) {
        const size_t row = group_begin(group);
        AddRows<Steps>(group_begin(group + 1) - row, weights, steps,
                       product.x + row * stride + input, stride, outputs, ahead,
                       sums + row * kOutputBlock);
      }
      weights = behind;
    }
    for (size_t i = 0; i < values; i += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::Load(d, sums + i)), d, y + i);
    }
  }
}

void Multiply(const FewRows& product, const void* weights, const void* next,
              size_t outputs, float* y) {
  if (product.type == WeightType::kF32) {
    return MultiplyAs<F32Steps>(product, weights, next, outputs, y);
  }
  MultiplyAs<Bf16Steps>(product, weights, next, outputs, y);
}

// wide [steps, 2, kOutputBlock], of weights [steps, kOutputBlock, 2].
void Widen(const uint32_t* weights, size_t steps, float* wide) {
  const F32 d;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < kOutputBlock; i += kLanes) {
      const Pair pair = LoadPair(weights + i);
      hn::Store(pair.even, d, wide + i);
      hn::Store(pair.odd, d, wide + kOutputBlock + i);
    }
    weights += kOutputBlock;
    wide += 2 * kOutputBlock;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::llm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace paged_kv::llm {
namespace {

HWY_EXPORT(Multiply);
HWY_EXPORT(Widen);

}  // namespace

void MultiplyFewRows(const FewRows& product, const void* weights,
                     const void* next, uint32_t outputs, float* y) {
  PAGED_KV_CHECK(outputs == kOutputBlock || outputs == kHalfBlock);
  PAGED_KV_CHECK(product.rows >= 1 && product.rows <= kMaxFewRows);
  PAGED_KV_CHECK(product.chain > 0);
  PAGED_KV_CHECK(product.type == WeightType::kF32 || product.chain % 2 == 0);
  HWY_DYNAMIC_DISPATCH(Multiply)(product, weights, next, outputs, y);
}

void WidenBlock(const void* weights, uint32_t inputs, float* wide) {
  PAGED_KV_CHECK(inputs % 2 == 0);
  HWY_DYNAMIC_DISPATCH(Widen)
  (static_cast<const uint32_t*>(weights), inputs / 2, wide);
}

}  // namespace paged_kv::llm

#endif  // HWY_ONCE
