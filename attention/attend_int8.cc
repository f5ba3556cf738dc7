// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attend_int8.cc"
#include "hwy/foreach_target.h"
//
#include "attention/attend-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

void AttendInt8Item(const AttendCall& call, const AttendTask& task,
                    const AttendTask& next, float* scratch) {
  ItemKernel<Int8Reader>(call, task, next, scratch).Run();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paged_kv::attention::internal {

AttendFunction AttendInt8(Isa isa) {
  return PAGED_KV_FUNCTION_FOR_ISA(AttendInt8Item, isa);
}

}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE
