// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_RING_QUEUE_H_
#define PAGED_KV_BATCH_SCHEDULER_RING_QUEUE_H_

#include <cstddef>
#include <vector>

#include "paged_kv/check.h"

namespace paged_kv::internal {

// A first-in, first-out queue of bounded length in one array.
template <typename T>
class RingQueue {
 public:
  explicit RingQueue(size_t capacity) : items_(capacity) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // REQUIRES: i < size(). 0 is the oldest.
  const T& at(size_t i) const { return items_[(first_ + i) % items_.size()]; }

  void Push(const T& item) {
    PAGED_KV_CHECK(size_ < items_.size());
    items_[(first_ + size_) % items_.size()] = item;
    ++size_;
  }
  T Pop() {
    PAGED_KV_CHECK(size_ > 0);
    const T item = items_[first_];
    first_ = (first_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_RING_QUEUE_H_
