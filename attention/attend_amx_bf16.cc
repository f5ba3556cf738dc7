// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

// Tiles come with AVX-512, so that is the only target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attend_amx_bf16.cc"
#include "hwy/foreach_target.h"
//
#include "attention/amx_tile_internal.h"
#include "attention/attend_amx-inl.h"
#include "attention/attend_internal.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

void AttendBf16AmxItem(const AttendCall& call, const AttendTask& task,
                       const AttendTask& next, float* scratch) {
  AmxManyRowsKernel<AmxBf16Elements>(call, task, next, scratch).Run();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace paged_kv::attention::internal {

ManyRowsKernel AttendBf16Amx(const BlockShape& shape) {
  constexpr uint32_t kDimsPerTile = 32;
  if (shape.head_dim % kDimsPerTile != 0 ||
      shape.VHeadDim() % kDimsPerTile != 0) {
    return {};
  }
#if PAGED_KV_HAS_AMX && (HWY_TARGETS & HWY_AVX3)
  // Fewer rows leave most of a tile empty, and memory is the bound then.
  return {N_AVX3::AttendBf16AmxItem, 9};
#else
  return {};
#endif
}

}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE
