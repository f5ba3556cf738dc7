// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of Highway's targets the kernels are compiled for, and how a source
// picks one. Every source with kernels includes this before any Highway header.

#ifndef PAGED_KV_ATTENTION_SIMD_TARGETS_INTERNAL_H_
#define PAGED_KV_ATTENTION_SIMD_TARGETS_INTERNAL_H_

#include "attention/isa.h"

// The kernels keep vectors in arrays, which vectors without a size at compile
// time cannot be. Arm and RISC-V processors run NEON and scalar code instead.
#define PAGED_KV_SIZELESS_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// Sanitizers make a kernel many times slower to compile; they leave out the
// targets whose loops are shaped like those of another one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HWY_DISABLED_TARGETS (PAGED_KV_SIZELESS_TARGETS | HWY_SSSE3 | HWY_AVX2)
#else
#define HWY_DISABLED_TARGETS PAGED_KV_SIZELESS_TARGETS
#define HWY_WANT_AVX3_DL 1  // compiled only on request in Highway 1.0
#endif

// The address of FUNC compiled for `isa`, nullptr if it was not. `isa` is not
// kAuto. Used under HWY_ONCE, in the namespace around HWY_NAMESPACE, in place
// of HWY_EXPORT, whose table is chosen per process; ours is chosen per call.
#define PAGED_KV_FUNCTION_FOR_ISA(FUNC, isa)                              \
  [](::paged_kv::attention::Isa wanted) -> decltype(&HWY_STATIC_DISPATCH( \
                                            FUNC)) {                      \
    using ::paged_kv::attention::Isa;                                     \
    switch (wanted) {                                                     \
      case Isa::kAmxBf16:                                                 \
      case Isa::kAvx512Dl:                                                \
        if (HWY_TARGETS & HWY_AVX3_DL) return HWY_CHOOSE_AVX3_DL(FUNC);   \
        return HWY_CHOOSE_AVX3(FUNC);                                     \
      case Isa::kAvx512:                                                  \
        return HWY_CHOOSE_AVX3(FUNC);                                     \
      case Isa::kAvx2:                                                    \
        return HWY_CHOOSE_AVX2(FUNC);                                     \
      case Isa::kSse4:                                                    \
        return HWY_CHOOSE_SSE4(FUNC);                                     \
      case Isa::kSsse3:                                                   \
        return HWY_CHOOSE_SSSE3(FUNC);                                    \
      case Isa::kNeon:                                                    \
        return HWY_CHOOSE_NEON(FUNC);                                     \
      case Isa::kScalar:                                                  \
        return HWY_CHOOSE_FALLBACK(FUNC);                                 \
      case Isa::kAuto:                                                    \
        break;                                                            \
    }                                                                     \
    return nullptr;                                                       \
  }(isa)

#endif  // PAGED_KV_ATTENTION_SIMD_TARGETS_INTERNAL_H_
