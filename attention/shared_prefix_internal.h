// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which sequences of a step begin with the same pages.

#ifndef PAGED_KV_ATTENTION_SHARED_PREFIX_INTERNAL_H_
#define PAGED_KV_ATTENTION_SHARED_PREFIX_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "attention/work_partition_internal.h"
#include "paged_kv/page_table.h"

namespace paged_kv::attention::internal {

// Below this many tokens, merging costs more than reading once saves.
inline constexpr int64_t kMinSharedTokens = 256;

// Sequences with one query whose first `tokens` tokens lie in the same pages.
struct SharedPrefix {
  std::vector<uint32_t>
      members;         // indices into the step's queries, two or more
  int64_t tokens = 0;  // whole pages, kMinSharedTokens or more
};

// Groups the decoding sequences of `queries`, each into one group at most, so
// that much is read once: sequences are sorted by their pages, and a group
// takes neighbours in as long as that saves more reads. Sequences without
// windows only. Time grows with the shared pages and n log n.
std::vector<SharedPrefix> FindSharedPrefixes(
    const PageTable& table, const std::vector<SequenceQueries>& queries);

}  // namespace paged_kv::attention::internal

#endif  // PAGED_KV_ATTENTION_SHARED_PREFIX_INTERNAL_H_
