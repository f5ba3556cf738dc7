// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/paged_kv/memory_latency.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "paged_kv/check.h"

namespace paged_kv::benchmarks {

// One cycle through all lines: Sattolo's algorithm (1986).
MemoryLatency::MemoryLatency(size_t bytes) {
  const size_t lines = std::max<size_t>(bytes / sizeof(Line), 2);
  PAGED_KV_CHECK(lines_.Create(lines).ok());
  for (size_t i = 0; i < lines; ++i) lines_[i].next = i;
  std::mt19937_64 random(1);
  for (size_t i = lines - 1; i > 0; --i) {
    std::swap(lines_[i].next, lines_[random() % i].next);
  }
}

double MemoryLatency::MeasureNs(size_t reads) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kStretch = 2000;
  std::vector<double> ns;
  for (size_t done = 0; done < reads; done += kStretch) {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < kStretch; ++i) position_ = lines_[position_].next;
    // Reading the position is what makes the clock wait for it.
    PAGED_KV_CHECK(position_ < lines_.size());
    const std::chrono::duration<double, std::nano> d = Clock::now() - start;
    ns.push_back(d.count() / kStretch);
  }
  const auto median = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
  std::nth_element(ns.begin(), median, ns.end());
  return *median;
}

}  // namespace paged_kv::benchmarks
