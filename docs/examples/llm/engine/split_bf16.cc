// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/split_bf16.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace paged_kv::llm {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// To nearest, ties away from zero: which way ties go does not matter where the
// rest follows, and without a test for NaN the loop stays a vector's. (The NaNs
// that arithmetic makes have a clear low half and stay NaNs.)
uint32_t RoundedBits(float value) {
  return (BitsOf(value) + 0x8000u) & 0xFFFF0000u;
}

uint16_t Stored(uint32_t bits, uint16_t) {
  return static_cast<uint16_t>(bits >> 16);
}

float Stored(uint32_t bits, float) { return FloatOf(bits); }

// Some values at a time and the parts outside, so that the loop inside is a
// vector's.
template <typename T>
void Split(absl::Span<const float> values, uint32_t parts, size_t stride,
           T* out) {
  constexpr size_t kValues = 64;
  float rest[kValues];
  for (size_t first = 0; first < values.size(); first += kValues) {
    const size_t n = std::min(kValues, values.size() - first);
    std::copy_n(values.data() + first, n, rest);
    for (uint32_t part = 0; part < parts; ++part) {
      T* const target = out + part * stride + first;
      for (size_t i = 0; i < n; ++i) {
        const uint32_t bits = RoundedBits(rest[i]);
        target[i] = Stored(bits, T{});
        rest[i] -= FloatOf(bits);
      }
    }
  }
}

}  // namespace

void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   uint16_t* out) {
  Split(values, parts, values.size(), out);
}

void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   size_t stride, uint16_t* out) {
  Split(values, parts, stride, out);
}

void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   size_t stride, float* out) {
  Split(values, parts, stride, out);
}

}  // namespace paged_kv::llm
