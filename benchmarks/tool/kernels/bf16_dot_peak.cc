// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/roof_kernels.h"

#include "benchmarks/tool/kernels/unroll.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paged_kv::tool {

#if defined(__x86_64__)

namespace {

constexpr size_t kChains = 12;

// Chains of vdpbf16ps, each 32 products of bf16 added to 16 sums of f32.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) float Dot(
    size_t iterations) {
  const __m512bh a =
      _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(-0.5f));
  const __m512bh b =
      _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.25f), _mm512_set1_ps(0.125f));
  __m512 chains[kChains];
  PAGED_KV_TOOL_UNROLL
  for (size_t c = 0; c < kChains; ++c) {
    chains[c] = _mm512_set1_ps(static_cast<float>(c));
  }
  for (size_t i = 0; i < iterations; ++i) {
    PAGED_KV_TOOL_UNROLL
    for (size_t c = 0; c < kChains; ++c) {
      chains[c] = _mm512_dpbf16_ps(chains[c], a, b);
    }
  }
  __m512 sum = _mm512_setzero_ps();
  PAGED_KV_TOOL_UNROLL
  for (size_t c = 0; c < kChains; ++c) sum = _mm512_add_ps(sum, chains[c]);
  return _mm512_cvtss_f32(sum);
}

}  // namespace

PeakKernel Bf16DotPeak() { return {"bf16_dot", Dot, kChains * 32 * 2}; }

#else

PeakKernel Bf16DotPeak() { return {}; }

#endif  // x86

}  // namespace paged_kv::tool
