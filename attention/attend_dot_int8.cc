// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

// Shared with the kernels on tiles, which are compiled for this target alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attend_dot_int8.cc"
#include "hwy/foreach_target.h"
//
#include "attention/amx_tile_internal.h"
#include "attention/attend_dot_int8-inl.h"
#include "attention/attend_internal.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

void AttendInt8DotItem(const AttendCall& call, const AttendTask& task,
                       const AttendTask& next, float* scratch) {
  DotInt8Kernel(call, task, next, scratch).Run();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace paged_kv::attention::internal {

ManyRowsKernel AttendInt8Dot(const BlockShape& shape) {
  constexpr uint32_t kDimsAtOnce = 16;
  constexpr uint32_t kColumnsAtOnce = 64;
  if (shape.head_dim % kDimsAtOnce != 0 ||
      shape.VHeadDim() % kColumnsAtOnce != 0) {
    return {};
  }
#if PAGED_KV_HAS_AMX && (HWY_TARGETS & HWY_AVX3)
  // One row takes as long in multiply-adds, without the rounding.
  return {N_AVX3::AttendInt8DotItem, 2};
#else
  return {};
#endif
}

}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE
