// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same everywhere. The standard fixes the output
// of std::mt19937_64 but not of its distributions, so the transforms are ours,
// and all in integers, so that no compiler's floating point can change them.

#ifndef PAGED_KV_BENCHMARKS_TOOL_RANDOM_H_
#define PAGED_KV_BENCHMARKS_TOOL_RANDOM_H_

#include <cstdint>
#include <random>

#include "absl/types/span.h"

namespace paged_kv::tool {

// A point of a quantile function: `per_mille` of all values are at or below
// `value`.
struct Quantile {
  uint32_t per_mille;
  uint32_t value;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // Uniform over all 32-bit values.
  uint32_t Bits() { return static_cast<uint32_t>(engine_() >> 32); }

  // Uniform over [0, n). REQUIRES: n > 0.
  uint32_t Below(uint32_t n);

  // True in `per_mille` of 1000 cases.
  bool Chance(uint32_t per_mille) { return Below(1000) < per_mille; }

  // A value with the given quantiles, linear between them. REQUIRES: from 0
  // to 1000 per mille, strictly ascending, values ascending.
  uint32_t FromQuantiles(absl::Span<const Quantile> quantiles);

  // Exponentially distributed with mean 2^32.
  uint64_t Exponential();

 private:
  std::mt19937_64 engine_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_RANDOM_H_
