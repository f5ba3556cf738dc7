// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_APPEND_INTERNAL_H_
#define PAGED_KV_ATTENTION_APPEND_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/isa.h"
#include "attention/kv_pages.h"

namespace paged_kv::attention::internal {

// Some tokens of one KV head, checked; strides are never 0.
struct AppendTask {
  const KvPages* pages = nullptr;
  uint32_t layer = 0;
  uint32_t kv_head = 0;
  KvRows k;  // from the first of the tokens on
  KvRows v;
  absl::Span<const int64_t> slot_mapping;  // of the tokens
};

// The scale of a row of `rows`, which has scales and their strides.
inline const float* RowScale(const KvRows& rows, size_t token,
                             uint32_t kv_head) {
  return reinterpret_cast<const float*>(
      reinterpret_cast<const uint8_t*>(rows.scales) +
      static_cast<int64_t>(token) * rows.scale_token_stride +
      kv_head * rows.scale_head_stride);
}

using AppendFunction = void (*)(const AppendTask& task);

// The kernel for a resolved Isa.
AppendFunction FindAppendKernel(Isa isa);

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_APPEND_INTERNAL_H_
