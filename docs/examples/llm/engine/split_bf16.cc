// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/split_bf16.h"

// Vectors have to divide a tile's row.
#include "docs/examples/llm/engine/fixed_vectors.h"  // before Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "docs/examples/llm/engine/split_bf16.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>

#include "paged_kv/check.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::llm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kTileValues = 32;
static_assert(kTileValues % kLanes == 0);

// To nearest, ties away from zero: which way ties go does not matter where the
// rest follows. (The NaNs that arithmetic makes have a clear low half and stay
// NaNs.)
HWY_INLINE hn::Vec<U32> RoundedBits(hn::Vec<F32> value) {
  const U32 d;
  return hn::And(hn::Add(hn::BitCast(d, value), hn::Set(d, 0x8000u)),
                 hn::Set(d, 0xFFFF0000u));
}

HWY_INLINE void StoreBits(hn::Vec<U32> bits, uint16_t* out) {
  const U16 d;
  hn::StoreU(hn::TruncateTo(d, hn::ShiftRight<16>(bits)), d, out);
}

// The parts of a vector; calls store(part, bits).
template <class Store>
HWY_INLINE void SplitVector(hn::Vec<F32> rest, size_t parts,
                            const Store& store) {
  const F32 d;
  for (size_t part = 0; part < parts; ++part) {
    const hn::Vec<U32> bits = RoundedBits(rest);
    store(part, bits);
    rest = hn::Sub(rest, hn::BitCast(d, bits));
  }
}

void SplitToU16(const float* values, size_t n, size_t parts, uint16_t* out) {
  const F32 d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    SplitVector(hn::LoadU(d, values + i), parts,
                [&](size_t part, hn::Vec<U32> bits)
                    HWY_ATTR { StoreBits(bits, out + part * n + i); });
  }
  if (i == n) return;
  HWY_ALIGN float last[kLanes] = {};
  std::copy(values + i, values + n, last);
  SplitVector(hn::Load(d, last), parts,
              [&](size_t part, hn::Vec<U32> bits) HWY_ATTR {
                uint16_t stored[kLanes];
                StoreBits(bits, stored);
                std::copy_n(stored, n - i, out + part * n + i);
              });
}

void SplitToTiles(const float* values, size_t n, size_t parts,
                  uint16_t* const* rows, size_t stride) {
  const F32 d;
  HWY_ALIGN float last[kTileValues] = {};
  for (size_t first = 0; first < n; first += kTileValues) {
    const float* source = values + first;
    if (first + kTileValues > n) {
      std::copy(source, values + n, last);
      source = last;
    }
    const size_t offset = first / kTileValues * stride;
    for (size_t i = 0; i < kTileValues; i += kLanes) {
      SplitVector(hn::LoadU(d, source + i), parts,
                  [&](size_t part, hn::Vec<U32> bits)
                      HWY_ATTR { StoreBits(bits, rows[part] + offset + i); });
    }
  }
}

void Join(const float* products, size_t stride, size_t parts, const float* bias,
          size_t n, float* y) {
  const F32 d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    auto sum = hn::LoadU(d, products + i);
    for (size_t part = 1; part < parts; ++part) {
      sum = hn::Add(sum, hn::LoadU(d, products + part * stride + i));
    }
    if (bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, bias + i));
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    float sum = products[i];
    for (size_t part = 1; part < parts; ++part) {
      sum += products[part * stride + i];
    }
    y[i] = bias != nullptr ? sum + bias[i] : sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::llm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace paged_kv::llm {
namespace {

HWY_EXPORT(SplitToU16);
HWY_EXPORT(SplitToTiles);
HWY_EXPORT(Join);

}  // namespace

void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   uint16_t* out) {
  PAGED_KV_CHECK(parts >= 1 && parts <= kMaxParts);
  HWY_DYNAMIC_DISPATCH(SplitToU16)
  (values.data(), values.size(), parts, out);
}

void SplitIntoTiles(absl::Span<const float> values,
                    absl::Span<uint16_t* const> rows, size_t stride) {
  PAGED_KV_CHECK(!rows.empty() && rows.size() <= kMaxParts);
  HWY_DYNAMIC_DISPATCH(SplitToTiles)
  (values.data(), values.size(), rows.size(), rows.data(), stride);
}

void JoinParts(const float* products, size_t stride, uint32_t parts,
               const float* bias, absl::Span<float> y) {
  PAGED_KV_CHECK(parts >= 1 && parts <= kMaxParts);
  HWY_DYNAMIC_DISPATCH(Join)
  (products, stride, parts, bias, y.size(), y.data());
}

}  // namespace paged_kv::llm

#endif  // HWY_ONCE
