// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/isa.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/amx_tile_internal.h"
#include "attention/simd_targets_internal.h"
#include "hwy/targets.h"

namespace paged_kv::attention {
namespace {

struct IsaEntry {
  Isa isa;
  const char* name;
  int64_t target;    // Highway's bit that the processor needs; 0: none
  int64_t compiled;  // those of which the binary needs one
};

// Binaries that leave out the loops of AVX3_DL use those of AVX3 in their
// place.
constexpr int64_t kAvx3 = HWY_AVX3_DL | HWY_AVX3;

// Best first.
constexpr IsaEntry kEntries[] = {
    {Isa::kAmxBf16, "amx_bf16", HWY_AVX3, HWY_AVX3},
    {Isa::kAvx512Dl, "avx512_dl", HWY_AVX3_DL, kAvx3},
    {Isa::kAvx512, "avx512", HWY_AVX3, HWY_AVX3},
    {Isa::kAvx2, "avx2", HWY_AVX2, HWY_AVX2},
    {Isa::kSse4, "sse4", HWY_SSE4, HWY_SSE4},
    {Isa::kSsse3, "ssse3", HWY_SSSE3, HWY_SSSE3},
    {Isa::kNeon, "neon", HWY_NEON, HWY_NEON},
    {Isa::kScalar, "scalar", HWY_SCALAR | HWY_EMU128, HWY_SCALAR | HWY_EMU128},
    {Isa::kAuto, "auto", 0, 0},
};

std::vector<Isa> FindSupportedIsas() {
  // Scalar code runs everywhere, even if Highway's library, which may have come
  // from another compiler, knows the fallback target by its other name.
  const int64_t supported = hwy::SupportedTargets() | HWY_SCALAR | HWY_EMU128;
  std::vector<Isa> isas;
  for (const IsaEntry& entry : kEntries) {
    if ((entry.target & supported) == 0) continue;
    if ((entry.compiled & HWY_TARGETS) == 0) continue;
    if (entry.isa == Isa::kAmxBf16 && !internal::CanUseAmxBf16()) continue;
    isas.push_back(entry.isa);
  }
  return isas;
}

}  // namespace

const char* IsaName(Isa isa) {
  for (const IsaEntry& entry : kEntries) {
    if (entry.isa == isa) return entry.name;
  }
  return "unknown";
}

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  for (const IsaEntry& entry : kEntries) {
    if (entry.name == name) return entry.isa;
  }
  const auto append_name = [](std::string* out, const IsaEntry& entry) {
    absl::StrAppend(out, entry.name);
  };
  return absl::InvalidArgumentError(
      absl::StrCat("no ISA is called \"", name, "\"; there are ",
                   absl::StrJoin(kEntries, ", ", append_name)));
}

const std::vector<Isa>& SupportedIsas() {
  static const std::vector<Isa>& isas =
      *new std::vector<Isa>(FindSupportedIsas());
  return isas;
}

absl::StatusOr<Isa> ResolveIsa(Isa isa) {
  const std::vector<Isa>& isas = SupportedIsas();
  if (isa == Isa::kAuto) return isas.front();
  if (std::find(isas.begin(), isas.end(), isa) != isas.end()) return isa;
  const auto append_name = [](std::string* out, Isa supported) {
    absl::StrAppend(out, IsaName(supported));
  };
  return absl::InvalidArgumentError(
      absl::StrCat("ISA ", IsaName(isa), " does not run here; these do: ",
                   absl::StrJoin(isas, ", ", append_name)));
}

}  // namespace paged_kv::attention
