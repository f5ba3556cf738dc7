// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/append_kv.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "attention/append_internal.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::attention {
namespace {

// Tokens of one task: enough to hide the cost of a task, few enough to keep
// several threads busy with a prompt of one head.
constexpr size_t kTaskTokens = 128;

// 8-bit rows have scales, others have none.
absl::Status CheckScalesArray(const char* name, const KvRows& rows) {
  if (HasScales(rows.dtype) != (rows.scales != nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", DTypeName(rows.dtype),
                     rows.scales == nullptr ? " without" : " with", " scales"));
  }
  constexpr int64_t kBytes = sizeof(float);
  const auto address = reinterpret_cast<uintptr_t>(rows.scales);
  if (address % alignof(float) != 0 || rows.scale_token_stride % kBytes != 0 ||
      rows.scale_head_stride % kBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " scales at 0x", absl::Hex(address), " with token stride ",
        rows.scale_token_stride, " and head stride ", rows.scale_head_stride,
        " are not aligned to ", kBytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const char* name, const KvRows& rows, DType stored) {
  if (rows.dtype != DType::kF32 && rows.dtype != stored) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", DTypeName(rows.dtype), ", pages of ",
                     DTypeName(stored), " take f32 or ", DTypeName(stored)));
  }
  if (rows.data == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
  }
  const int64_t element = ElementBytes(rows.dtype);
  const auto address = reinterpret_cast<uintptr_t>(rows.data);
  if (address % static_cast<uintptr_t>(element) != 0 ||
      rows.token_stride % element != 0 || rows.head_stride % element != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " at 0x", absl::Hex(address), " with token stride ",
                     rows.token_stride, " and head stride ", rows.head_stride,
                     " is not aligned to ", element, " bytes"));
  }
  return CheckScalesArray(name, rows);
}

absl::Status CheckSlots(const KvPages& pages,
                        absl::Span<const int64_t> slot_mapping) {
  const int64_t slots = int64_t{pages.num_pages} * pages.shape.block_tokens;
  for (size_t i = 0; i < slot_mapping.size(); ++i) {
    if (slot_mapping[i] < slots) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("slot_mapping[", i, "] is ", slot_mapping[i],
                     ", but the pages have ", slots, " slots"));
  }
  return absl::OkStatus();
}

// Rows with their strides filled in.
absl::Status CheckScaleValues(const char* name, const KvRows& rows,
                              uint32_t kv_heads,
                              absl::Span<const int64_t> slot_mapping) {
  if (rows.scales == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < slot_mapping.size(); ++i) {
    if (slot_mapping[i] < 0) continue;
    for (uint32_t head = 0; head < kv_heads; ++head) {
      const float scale = *internal::RowScale(rows, i, head);
      if (std::isfinite(scale) && scale > 0.0f) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(name, " scale of token ", i, ", head ", head, " is ",
                       scale, ", must be finite and above 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAppend(const KvPages& pages, uint32_t layer, const KvRows& k,
                         const KvRows& v,
                         absl::Span<const int64_t> slot_mapping) {
  PAGED_KV_RETURN_IF_ERROR(Validate(pages));
  if (layer >= pages.shape.layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer is ", layer, ", but pages hold ", pages.shape.layers));
  }
  if (slot_mapping.empty()) return absl::OkStatus();
  PAGED_KV_RETURN_IF_ERROR(CheckRows("k", k, pages.shape.dtype));
  PAGED_KV_RETURN_IF_ERROR(CheckRows("v", v, pages.shape.dtype));
  return CheckSlots(pages, slot_mapping);
}

// With the strides filled in.
KvRows WithStrides(KvRows rows, uint32_t kv_heads, uint32_t dim) {
  if (rows.head_stride == 0) {
    rows.head_stride = int64_t{dim} * ElementBytes(rows.dtype);
  }
  if (rows.token_stride == 0) rows.token_stride = rows.head_stride * kv_heads;
  if (rows.scale_head_stride == 0) rows.scale_head_stride = sizeof(float);
  if (rows.scale_token_stride == 0) {
    rows.scale_token_stride = rows.scale_head_stride * kv_heads;
  }
  return rows;
}

// The rows from `token` on.
KvRows From(KvRows rows, size_t token) {
  rows.data = static_cast<const uint8_t*>(rows.data) +
              static_cast<int64_t>(token) * rows.token_stride;
  if (rows.scales != nullptr) {
    rows.scales = internal::RowScale(rows, token, 0);
  }
  return rows;
}

}  // namespace

absl::Status AppendKv(const KvPages& pages, uint32_t layer, const KvRows& k,
                      const KvRows& v, absl::Span<const int64_t> slot_mapping,
                      ParallelFor& parallel, Isa isa) {
  PAGED_KV_RETURN_IF_ERROR(CheckAppend(pages, layer, k, v, slot_mapping));
  PAGED_KV_ASSIGN_OR_RETURN(const Isa resolved, ResolveIsa(isa));
  if (slot_mapping.empty()) return absl::OkStatus();
  const BlockShape& shape = pages.shape;
  const KvRows k_rows = WithStrides(k, shape.kv_heads, shape.head_dim);
  const KvRows v_rows = WithStrides(v, shape.kv_heads, shape.VHeadDim());
  PAGED_KV_RETURN_IF_ERROR(
      CheckScaleValues("k", k_rows, shape.kv_heads, slot_mapping));
  PAGED_KV_RETURN_IF_ERROR(
      CheckScaleValues("v", v_rows, shape.kv_heads, slot_mapping));
  const internal::AppendFunction kernel = internal::FindAppendKernel(resolved);

  const size_t parts = (slot_mapping.size() + kTaskTokens - 1) / kTaskTokens;
  parallel.Run(parts * shape.kv_heads, [&](size_t t, size_t) {
    const size_t first = t / shape.kv_heads * kTaskTokens;
    internal::AppendTask task;
    task.pages = &pages;
    task.layer = layer;
    task.kv_head = static_cast<uint32_t>(t % shape.kv_heads);
    task.k = From(k_rows, first);
    task.v = From(v_rows, first);
    task.slot_mapping = slot_mapping.subspan(
        first, std::min(kTaskTokens, slot_mapping.size() - first));
    kernel(task);
  });
  return absl::OkStatus();
}

}  // namespace paged_kv::attention
