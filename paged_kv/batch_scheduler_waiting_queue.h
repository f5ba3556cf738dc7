// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_WAITING_QUEUE_H_
#define PAGED_KV_BATCH_SCHEDULER_WAITING_QUEUE_H_

#include <cstddef>

#include "absl/container/btree_set.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {

// Samples that hold no blocks, best rank first. A preempted sample keeps its
// rank and so comes before all that arrived after it. O(log size) per change.
class WaitingQueue {
 public:
  void Insert(const RankedSample& entry) {
    const bool is_new = entries_.insert(entry).second;
    PAGED_KV_CHECK(is_new);
  }
  void Erase(const RankedSample& entry) {
    const size_t erased = entries_.erase(entry);
    PAGED_KV_CHECK(erased == 1);
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  absl::btree_set<RankedSample> entries_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_WAITING_QUEUE_H_
