// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that the kernels are compiled for. One binary holds all
// of them; each call uses the best one that the processor has, or the one that
// the caller asks for.

#ifndef PAGED_KV_ATTENTION_ISA_H_
#define PAGED_KV_ATTENTION_ISA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace paged_kv::attention {

enum class Isa : uint8_t {
  kAuto,  // the best one that this machine runs
  kScalar,
  kSsse3,
  kSse4,      // SSE4.2, PCLMUL, AES
  kAvx2,      // AVX2, FMA, F16C, BMI2
  kAvx512,    // AVX-512 F, BW, CD, DQ, VL
  kAvx512Dl,  // kAvx512 and VNNI, VBMI2, BITALG, VAES, ...
  kNeon,
  kAmxBf16,  // tiles of bf16 where a kernel has them, else kAvx512Dl
};

// "auto", "scalar", "ssse3", "sse4", "avx2", "avx512", "avx512_dl", "neon",
// "amx_bf16".
const char* IsaName(Isa isa);

// The Isa of that name; InvalidArgument, listing the names, if there is none.
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

// What this binary holds and this machine runs, best first; never kAuto, never
// empty.
const std::vector<Isa>& SupportedIsas();

// `isa` itself, or the best supported one for kAuto. InvalidArgument if the
// machine does not run it.
absl::StatusOr<Isa> ResolveIsa(Isa isa);

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_ISA_H_
