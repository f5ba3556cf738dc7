// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Caches of every kind, small enough to be always short of something.

#ifndef PAGED_KV_TESTS_SUPPORT_RANDOM_OPTIONS_H_
#define PAGED_KV_TESTS_SUPPORT_RANDOM_OPTIONS_H_

#include <cstdint>
#include <string>

#include "paged_kv/kv_cache_options.h"

namespace paged_kv::testing {

// A small, fast generator (SplitMix64, Steele, Lea, Flood 2014). Equal seeds
// give equal sequences on every machine.
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}

  uint64_t operator()() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // From 0 to n - 1.
  uint32_t Below(uint32_t n) {
    return static_cast<uint32_t>(((*this)() >> 32) * n >> 32);
  }
  // From low to high, both included.
  uint32_t Between(uint32_t low, uint32_t high) {
    return low + Below(high - low + 1);
  }
  bool OneIn(uint32_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

// What the operations on a cache are like.
struct WorkloadShape {
  uint32_t longest_prompt = 48;
  uint32_t longest_append = 6;
};

struct RandomCache {
  KvCacheOptions options;
  WorkloadShape workload;
  std::string name;  // for messages
};

// How many kinds there are.
inline constexpr uint32_t kRandomCacheKinds = 13;

// A cache of kind `kind` modulo kRandomCacheKinds, its numbers drawn from
// `seed`. `blocks`: host_blocks; 0: drawn too.
RandomCache MakeRandomCache(uint32_t kind, uint64_t seed, uint32_t blocks);

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_RANDOM_OPTIONS_H_
