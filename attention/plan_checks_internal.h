// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is checked once at the entry, so that kernels need not.

#ifndef PAGED_KV_ATTENTION_PLAN_CHECKS_INTERNAL_H_
#define PAGED_KV_ATTENTION_PLAN_CHECKS_INTERNAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "attention/attention_options.h"
#include "attention/kv_pages.h"
#include "paged_kv/page_table.h"

namespace paged_kv::attention::internal {

// InvalidArgument unless the KV heads divide the query heads.
absl::Status CheckHeads(const BlockShape& shape, uint32_t query_heads);

// InvalidArgument unless the attention kernels take pages of this shape.
absl::Status CheckKernelShape(const BlockShape& shape);

// InvalidArgument unless the table's arrays agree with each other and with the
// pages, every page index included.
absl::Status CheckPageTable(const KvPages& pages, const PageTable& table);

// InvalidArgument unless qo_indptr gives each sequence of the (checked) table
// at most as many queries as it has tokens.
absl::Status CheckQueries(const PageTable& table,
                          absl::Span<const int32_t> qo_indptr);

// InvalidArgument if a query at `first_position` of sequence i (or later) sees
// a key that the (checked) table has released.
absl::Status CheckWindow(const PageTable& table, size_t i,
                         int64_t first_position,
                         const AttentionOptions& options);

// InvalidArgument unless the array has `expected` elements and, where that is
// not 0, is not null and aligned.
absl::Status CheckArray(absl::string_view name, const void* data, size_t size,
                        size_t expected, size_t alignment);

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_PLAN_CHECKS_INTERNAL_H_
