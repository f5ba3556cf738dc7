// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_H_
#define PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace paged_kv::attention::testing {

// SplitMix64 (Steele et al. 2014): fast, and the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform over [low, high].
  uint32_t Between(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(Bits() % (uint64_t{high} - low + 1));
  }

  bool Chance(uint32_t percent) { return Between(1, 100) <= percent; }

  // Uniform over [-limit, limit).
  float Uniform(float limit) {
    const auto whole = static_cast<int32_t>(Bits() >> 40);  // 24 bits
    return (static_cast<float>(whole) * 0x1p-23f - 1.0f) * limit;
  }

  template <typename T>
  T Pick(std::initializer_list<T> values) {
    const auto i = Between(0, static_cast<uint32_t>(values.size()) - 1);
    return *(values.begin() + i);
  }

  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) {
      std::swap((*values)[i - 1],
                (*values)[Between(0, static_cast<uint32_t>(i) - 1)]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace paged_kv::attention::testing

#endif  // PAGED_KV_TESTS_SUPPORT_ATTENTION_RANDOM_H_
