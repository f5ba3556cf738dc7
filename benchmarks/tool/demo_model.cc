// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/demo_model.h"

#include <cstddef>

#include "benchmarks/tool/random.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kFeatures = size_t{1} << 20;

// Finalizer of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

DemoModel::DemoModel(uint64_t seed) : features_(kFeatures) {
  Random random(seed);
  for (float& feature : features_) {
    feature = static_cast<float>(random.Bits() >> 8) * 0x1p-23f - 1.0f;
  }
}

void DemoModel::Project(Projection projection, TokenId token, uint32_t position,
                        uint32_t layer, absl::Span<float> row) const {
  PAGED_KV_CHECK(row.size() < kFeatures);
  const uint64_t key = Mix(static_cast<uint64_t>(token)) ^
                       Mix(uint64_t{position} << 32 | layer << 2 |
                           static_cast<uint32_t>(projection));
  const float* features =
      features_.data() + Mix(key) % (kFeatures - row.size());
  for (size_t i = 0; i < row.size(); ++i) row[i] = features[i];
}

void DemoModel::AddLogits(uint32_t layer, absl::Span<const float> attended,
                          absl::Span<float> logits) const {
  for (size_t v = 0; v < logits.size(); ++v) {
    const float* weights = features_.data() + Mix(uint64_t{layer} << 32 | v) %
                                                  (kFeatures - attended.size());
    float sum = 0;
    for (size_t i = 0; i < attended.size(); ++i)
      sum += attended[i] * weights[i];
    logits[v] += sum;
  }
}

}  // namespace paged_kv::tool
