// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_RUNNING_SET_H_
#define PAGED_KV_BATCH_SCHEDULER_RUNNING_SET_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {

// Samples that hold blocks, best rank first. Small (max_batch_sequences), so a
// sorted array; never allocates after construction.
class RunningSet {
 public:
  explicit RunningSet(size_t capacity) { entries_.reserve(capacity); }

  void Insert(const RankedSample& entry) {
    PAGED_KV_CHECK(entries_.size() < entries_.capacity());
    entries_.insert(std::lower_bound(entries_.begin(), entries_.end(), entry),
                    entry);
  }
  void Erase(const RankedSample& entry) {
    const auto it = std::lower_bound(entries_.begin(), entries_.end(), entry);
    PAGED_KV_CHECK(it != entries_.end());
    PAGED_KV_CHECK(it->ref == entry.ref);
    entries_.erase(it);
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  // REQUIRES: i < size(). 0 is the best.
  const RankedSample& at(size_t i) const { return entries_[i]; }
  // REQUIRES: !empty().
  const RankedSample& worst() const { return entries_.back(); }

 private:
  std::vector<RankedSample> entries_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_RUNNING_SET_H_
