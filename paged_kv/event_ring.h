// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_EVENT_RING_H_
#define PAGED_KV_EVENT_RING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/cache_event.h"
#include "paged_kv/lazy_array.h"

namespace paged_kv::internal {

// The last events, until drained. When full, the oldest is overwritten and
// counted. Thread safety: thread-compatible.
class EventRing {
 public:
  // 0: no events.
  absl::Status Create(uint32_t capacity) { return events_.Create(capacity); }

  bool enabled() const { return events_.size() > 0; }
  uint64_t dropped() const { return dropped_; }

  void Push(const CacheEvent& event) {
    events_[(first_ + count_) % events_.size()] = event;
    if (count_ < events_.size()) {
      ++count_;
    } else {
      first_ = (first_ + 1) % events_.size();
      ++dropped_;
    }
  }

  size_t Drain(absl::Span<CacheEvent> target) {
    size_t moved = 0;
    while (moved < target.size() && count_ > 0) {
      target[moved++] = events_[first_];
      first_ = (first_ + 1) % events_.size();
      --count_;
    }
    return moved;
  }

 private:
  LazyArray<CacheEvent> events_;
  size_t first_ = 0;
  size_t count_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_EVENT_RING_H_
