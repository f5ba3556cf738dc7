// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/random.h"

#include "paged_kv/check.h"

namespace paged_kv::tool {

// Multiply-shift with rejection (Lemire 2019, "Fast random integer generation
// in an interval"): every value is exactly as likely as the others.
uint32_t Random::Below(uint32_t n) {
  PAGED_KV_CHECK(n > 0);
  const uint32_t threshold = (0u - n) % n;
  for (;;) {
    const uint64_t product = uint64_t{Bits()} * n;
    if (static_cast<uint32_t>(product) >= threshold) {
      return static_cast<uint32_t>(product >> 32);
    }
  }
}

uint32_t Random::FromQuantiles(absl::Span<const Quantile> quantiles) {
  PAGED_KV_CHECK(quantiles.size() >= 2);
  PAGED_KV_CHECK(quantiles.front().per_mille == 0);
  PAGED_KV_CHECK(quantiles.back().per_mille == 1000);
  // Per mille in 32.32 fixed point.
  const uint64_t at = uint64_t{Bits()} * 1000;
  size_t i = 1;
  while (uint64_t{quantiles[i].per_mille} << 32 <= at) ++i;
  const Quantile& low = quantiles[i - 1];
  const Quantile& high = quantiles[i];
  const uint64_t into = at - (uint64_t{low.per_mille} << 32);
  const uint64_t width = uint64_t{high.per_mille - low.per_mille} << 32;
  // Drop 24 bits so that the product with a 24-bit value fits.
  const uint64_t span = high.value - low.value;
  return low.value +
         static_cast<uint32_t>(((into >> 24) * span) / (width >> 24));
}

// Von Neumann's comparison method (1951, "Various techniques used in
// connection with random digits"): needs no logarithm. A run of descending
// numbers of odd length accepts its first number as the fraction; every
// rejected run adds one to the integer part.
uint64_t Random::Exponential() {
  for (uint64_t whole = 0;; ++whole) {
    const uint32_t first = Bits();
    uint32_t last = first;
    bool odd = true;
    for (;;) {
      const uint32_t next = Bits();
      if (next >= last) break;
      last = next;
      odd = !odd;
    }
    if (odd) return (whole << 32) | first;
  }
}

}  // namespace paged_kv::tool
