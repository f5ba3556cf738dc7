// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_ATTENTION_SPLIT_MERGE_INTERNAL_H_
#define PAGED_KV_ATTENTION_SPLIT_MERGE_INTERNAL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "attention/attend_internal.h"
#include "attention/work_partition_internal.h"

namespace paged_kv::attention::internal {

// Merges the partial results of one KV head's split rows, in key order, and
// writes their outputs. `parts`: first partial row of each part.
void MergeSplits(const AttendCall& call, const SplitRows& split,
                 absl::Span<const int64_t> parts, uint32_t kv_head);

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_SPLIT_MERGE_INTERNAL_H_
