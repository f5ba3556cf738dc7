// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_TICK_SAMPLE_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_TICK_SAMPLE_H_

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paged_kv::benchmarks {

// A clock that is cheap enough to read around every operation. Its unit is
// known only relative to steady_clock.
inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Durations, the last kCapacity of them.
class TickSample {
 public:
  TickSample() { values_.reserve(kCapacity); }

  void Add(uint64_t duration) {
    const auto value =
        static_cast<uint32_t>(std::min<uint64_t>(duration, UINT32_MAX));
    if (values_.size() < kCapacity) {
      values_.push_back(value);
    } else {
      values_[next_] = value;
      next_ = (next_ + 1) % kCapacity;
    }
  }
  bool empty() const { return values_.empty(); }

  // The value that `per_mille` of 1000 do not exceed. REQUIRES: not empty.
  uint32_t Quantile(uint32_t per_mille) {
    const size_t rank = (values_.size() - 1) * per_mille / 1000;
    const auto place = values_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values_.begin(), place, values_.end());
    return *place;
  }

 private:
  static constexpr size_t kCapacity = size_t{1} << 20;
  std::vector<uint32_t> values_;
  size_t next_ = 0;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_TICK_SAMPLE_H_
