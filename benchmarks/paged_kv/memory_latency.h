// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_MEMORY_LATENCY_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_MEMORY_LATENCY_H_

#include <cstddef>
#include <cstdint>

#include "paged_kv/lazy_array.h"

namespace paged_kv::benchmarks {

// The bound beside a measured time: what one read costs that has to wait for
// the one before, over as much memory, from the same allocator and so with the
// same pages. A chase along one random cycle through all cache lines.
class MemoryLatency {
 public:
  explicit MemoryLatency(size_t bytes);

  size_t bytes() const { return lines_.size() * sizeof(Line); }
  // Nanoseconds per read over `reads` further steps of the cycle; the median
  // of short stretches, so that a stretch in which another process ran is
  // none.
  double MeasureNs(size_t reads);

 private:
  struct alignas(64) Line {
    uint64_t next;
  };
  internal::LazyArray<Line> lines_;
  uint64_t position_ = 0;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_MEMORY_LATENCY_H_
