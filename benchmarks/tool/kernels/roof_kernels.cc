// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors are the compiler's own types and functions carry the attribute of
// their instruction set, so that the binary starts on any machine.

#include "benchmarks/tool/kernels/roof_kernels.h"

#include <cstring>

#include "benchmarks/tool/kernels/unroll.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paged_kv::tool {
namespace {

typedef uint64_t Words16 __attribute__((vector_size(16)));
typedef uint64_t Words32 __attribute__((vector_size(32)));
typedef uint64_t Words64 __attribute__((vector_size(64)));
typedef float Floats16 __attribute__((vector_size(16)));

}  // namespace
}  // namespace paged_kv::tool

// One number at a time, as far as the compiler leaves it at that.
#define PAGED_KV_ROOF_NAMESPACE scalar
#define PAGED_KV_ROOF_TARGET
#define PAGED_KV_ROOF_WORDS uint64_t
#define PAGED_KV_ROOF_FLOATS float
#define PAGED_KV_ROOF_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "benchmarks/tool/kernels/roof_kernels-inl.h"

// The 128-bit vectors that every 64-bit x86 and Arm processor has.
#define PAGED_KV_ROOF_NAMESPACE vector128
#define PAGED_KV_ROOF_TARGET
#define PAGED_KV_ROOF_WORDS Words16
#define PAGED_KV_ROOF_FLOATS Floats16
#define PAGED_KV_ROOF_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "benchmarks/tool/kernels/roof_kernels-inl.h"

#if defined(__x86_64__)

#define PAGED_KV_ROOF_NAMESPACE avx2
#define PAGED_KV_ROOF_TARGET __attribute__((target("avx2,fma")))
#define PAGED_KV_ROOF_WORDS Words32
#define PAGED_KV_ROOF_FLOATS __m256
#define PAGED_KV_ROOF_MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "benchmarks/tool/kernels/roof_kernels-inl.h"

#define PAGED_KV_ROOF_NAMESPACE avx512
#define PAGED_KV_ROOF_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define PAGED_KV_ROOF_WORDS Words64
#define PAGED_KV_ROOF_FLOATS __m512
#define PAGED_KV_ROOF_MULTIPLY_ADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "benchmarks/tool/kernels/roof_kernels-inl.h"

#endif  // x86

namespace paged_kv::tool {

using attention::Isa;

RoofKernels RoofKernelsFor(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return scalar::Kernels();
    case Isa::kSsse3:
    case Isa::kSse4:
    case Isa::kNeon:
      return vector128::Kernels();
    default:
      break;
  }
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return avx2::Kernels();
  RoofKernels kernels = avx512::Kernels();
  if (isa == Isa::kAmxBf16) {
    if (__builtin_cpu_supports("avx512bf16")) {
      kernels.peaks.push_back(Bf16DotPeak());
    }
    kernels.peaks.push_back(Bf16TilePeak());
  }
  return kernels;
#else
  return vector128::Kernels();
#endif
}

}  // namespace paged_kv::tool
