// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are a cache and operations on it: the manager must agree with the
// naive model at every call.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "paged_kv/check.h"
#include "tests/support/random_operations.h"
#include "tests/support/shrink_operations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using paged_kv::testing::Operation;
  // Two bytes for the cache, then four per operation.
  constexpr size_t kOperationBytes = 4;
  constexpr size_t kMostOperations = 300;
  if (size < 2) return 0;
  const paged_kv::testing::RandomCache cache =
      paged_kv::testing::MakeRandomCache(data[0], data[1], 0);
  std::vector<Operation> operations;
  for (size_t at = 2;
       at + kOperationBytes <= size && operations.size() < kMostOperations;
       at += kOperationBytes) {
    Operation operation;
    operation.kind = static_cast<Operation::Kind>(
        data[at] % paged_kv::testing::kOperationKinds);
    operation.pick = data[at + 1];
    operation.seed = data[at + 2] | static_cast<uint32_t>(data[at + 3]) << 8;
    operations.push_back(operation);
  }
  size_t steps = 0;
  if (paged_kv::testing::RunOperations(cache, operations, &steps).empty()) {
    return 0;
  }
  std::fprintf(stderr, "%s",
               paged_kv::testing::ShrinkOperations(cache, operations).c_str());
  PAGED_KV_CHECK(false && "the manager and the model disagree");
  return 0;
}
