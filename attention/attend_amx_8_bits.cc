// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/simd_targets_internal.h"

// Tiles come with AVX-512, so that is the only target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attend_amx_8_bits.cc"
#include "hwy/foreach_target.h"
//
#include "attention/amx_tile_internal.h"
#include "attention/attend_amx-inl.h"
#include "attention/attend_amx_few-inl.h"
#include "attention/attend_amx_int8-inl.h"
#include "attention/attend_internal.h"

#if PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace paged_kv::attention::internal {
namespace HWY_NAMESPACE {

template <class Codes>
void Attend8BitsAmxItem(const AttendCall& call, const AttendTask& task,
                        const AttendTask& next, float* scratch) {
  using Elements = AmxEightBitElements<Codes>;
  if (task.item->num_rows <= AmxFewRowsKernel<Elements>::kMaxRows) {
    AmxFewRowsKernel<Elements>(call, task, next, scratch).Run();
  } else {
    AmxManyRowsKernel<Elements>(call, task, next, scratch).Run();
  }
}

// For heads that fill the tiles of bytes.
void AttendInt8AmxItem(const AttendCall& call, const AttendTask& task,
                       const AttendTask& next, float* scratch) {
  if (task.item->num_rows <= AmxInt8Kernel::kMaxRows) {
    AmxInt8Kernel(call, task, next, scratch).Run();
  } else {
    Attend8BitsAmxItem<Int8Codes>(call, task, next, scratch);
  }
}

AttendFunction Attend8BitsAmxFunction(const BlockShape& shape) {
  if (shape.dtype != DType::kInt8) return Attend8BitsAmxItem<E4m3Codes>;
  return shape.head_dim % AmxInt8Kernel::kDims == 0
             ? AttendInt8AmxItem
             : Attend8BitsAmxItem<Int8Codes>;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace paged_kv::attention::internal
HWY_AFTER_NAMESPACE();

#endif  // PAGED_KV_HAS_AMX && HWY_TARGET == HWY_AVX3

#if HWY_ONCE
namespace paged_kv::attention::internal {

ManyRowsKernel Attend8BitsAmx(const BlockShape& shape) {
  constexpr uint32_t kDimsPerTile = 32;
  constexpr uint32_t kColumnsAtOnce = 64;
  if (shape.head_dim % kDimsPerTile != 0 ||
      shape.VHeadDim() % kColumnsAtOnce != 0) {
    return {};
  }
#if PAGED_KV_HAS_AMX && (HWY_TARGETS & HWY_AVX3)
  // One row takes as long in vectors, without the rounding.
  return {N_AVX3::Attend8BitsAmxFunction(shape), 2};
#else
  return {};
#endif
}

}  // namespace paged_kv::attention::internal
#endif  // HWY_ONCE
