// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/rope.h"

#include <cmath>

namespace paged_kv::llm {
namespace {

// Rotates `half` pairs; the two of pair i lie at i * step and i * step + apart.
template <size_t kStep>
void RotateHead(const float* source, size_t half, size_t apart,
                const float* cosines, const float* sines, float* target) {
  for (size_t i = 0; i < half; ++i) {
    const float a = source[i * kStep];
    const float b = source[i * kStep + apart];
    target[i * kStep] = a * cosines[i] - b * sines[i];
    target[i * kStep + apart] = a * sines[i] + b * cosines[i];
  }
}

}  // namespace

Rope::Rope(const ModelConfig& config, absl::Span<const float> factors)
    : style_(config.rope_style), half_(config.head_dim / 2) {
  for (uint32_t i = 0; i < half_; ++i) {
    const double exponent = -2.0 * i / config.head_dim;
    const double factor = factors.empty() ? 1.0 : double{factors[i]};
    frequencies_.push_back(std::pow(double{config.rope_theta}, exponent) /
                           factor);
  }
}

void Rope::SetPositions(absl::Span<const uint32_t> positions) {
  cosines_.resize(positions.size() * half_);
  sines_.resize(positions.size() * half_);
  for (size_t row = 0; row < positions.size(); ++row) {
    for (uint32_t i = 0; i < half_; ++i) {
      const double angle = positions[row] * frequencies_[i];
      cosines_[row * half_ + i] = static_cast<float>(std::cos(angle));
      sines_[row * half_ + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void Rope::Rotate(size_t row, uint32_t heads, const float* source,
                  float* target) const {
  const float* cosines = cosines_.data() + row * half_;
  const float* sines = sines_.data() + row * half_;
  for (size_t head = 0; head < heads; ++head) {
    const size_t first = head * 2 * half_;
    if (style_ == RopeStyle::kInterleaved) {
      RotateHead<2>(source + first, half_, 1, cosines, sines, target + first);
    } else {
      RotateHead<1>(source + first, half_, half_, cosines, sines,
                    target + first);
    }
  }
}

}  // namespace paged_kv::llm
