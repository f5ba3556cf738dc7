// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts a step's attention into work items.

#ifndef PAGED_KV_ATTENTION_WORK_PARTITION_INTERNAL_H_
#define PAGED_KV_ATTENTION_WORK_PARTITION_INTERNAL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/attend_internal.h"
#include "attention/attention_options.h"

namespace paged_kv::attention::internal {

// The queries of one sequence.
struct SequenceQueries {
  uint32_t sequence = 0;
  int64_t num_queries = 0;
  int64_t first_query = 0;     // row of q
  int64_t first_position = 0;  // of its first query; -1 without tokens
  int64_t num_tokens = 0;      // of the sequence
};

struct SharedPrefix;

// Rows whose keys were split: partial results to be merged, in key order.
struct SplitRows {
  WorkItem rows;  // whose outputs they are
  uint32_t first_part = 0;
  uint32_t num_parts = 0;
};

struct WorkPartition {
  std::vector<WorkItem> items;  // longest first
  std::vector<SplitRows> splits;
  std::vector<int64_t> parts;  // first partial row of each part
  std::vector<SharedQuery> shared_queries;
  int64_t partial_rows = 0;
};

// The cut of the queries into items, for each KV head the same. Depends on the
// step alone, never on threads.
//
// `group` is the number of query heads per KV head. Keys are split where a
// step would otherwise have fewer than kTargetItems equal shares of work; a
// split has at least kMinSplitTokens keys. The keys of a shared prefix are
// items of their own with the rows of several members (Hydragen, Juravsky et
// al. 2024, arXiv:2402.05099; FlashInfer's cascade attention).
WorkPartition PartitionWork(const std::vector<SequenceQueries>& queries,
                            const std::vector<SharedPrefix>& shared,
                            uint32_t kv_heads, uint32_t group,
                            const AttentionOptions& options);

// Enough for a few dozen threads to share evenly.
inline constexpr int64_t kTargetItems = 64;
// Below this the start of an item and the merge cost too much.
inline constexpr int64_t kMinSplitTokens = 1024;

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_WORK_PARTITION_INTERNAL_H_
