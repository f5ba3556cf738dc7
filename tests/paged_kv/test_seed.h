// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_PAGED_KV_TEST_SEED_H_
#define PAGED_KV_TESTS_PAGED_KV_TEST_SEED_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace paged_kv {

// The seed of a randomised test, printed so that a failure can be repeated:
// PAGED_KV_TEST_SEED of the environment, or `fallback`.
inline uint64_t TestSeed(uint64_t fallback) {
  const char* text = std::getenv("PAGED_KV_TEST_SEED");
  const uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 0) : fallback;
  std::printf("PAGED_KV_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_PAGED_KV_TEST_SEED_H_
