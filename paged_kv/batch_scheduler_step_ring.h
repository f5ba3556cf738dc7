// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STEP_RING_H_
#define PAGED_KV_BATCH_SCHEDULER_STEP_RING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "paged_kv/batch_scheduler.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/check.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// Whose item it is. The request may have been taken and its slot be another's
// by the time the step completes; the generation tells.
struct ItemOwner {
  SampleRef ref;
  uint64_t generation = 0;
};

struct StepInFlight {
  StepId id;
  std::vector<WorkItem> items;
  std::vector<ItemOwner> owners;  // parallel to items
  uint32_t outputs = 0;
  TokenCount new_tokens;
  TokenCount draft_tokens;
};

// The steps scheduled and not completed, oldest first. Allocates nothing after
// construction.
class StepRing {
 public:
  StepRing(size_t capacity, size_t max_items) : steps_(capacity) {
    for (StepInFlight& step : steps_) {
      step.items.reserve(max_items);
      step.owners.reserve(max_items);
    }
  }

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == steps_.size(); }
  size_t size() const { return size_; }

  // REQUIRES: i < size(). 0 is the oldest.
  const StepInFlight& at(size_t i) const {
    return steps_[(first_ + i) % steps_.size()];
  }
  const StepInFlight& oldest() const { return at(0); }
  const StepInFlight& newest() const { return at(size_ - 1); }

  // An empty step behind the newest. REQUIRES: !full().
  StepInFlight& Push() {
    PAGED_KV_CHECK(!full());
    StepInFlight& step = steps_[(first_ + size_) % steps_.size()];
    ++size_;
    step.items.clear();
    step.owners.clear();
    step.outputs = 0;
    step.new_tokens = TokenCount(0);
    step.draft_tokens = TokenCount(0);
    return step;
  }
  void PopOldest() {
    PAGED_KV_CHECK(!empty());
    first_ = (first_ + 1) % steps_.size();
    --size_;
  }

 private:
  std::vector<StepInFlight> steps_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_STEP_RING_H_
