// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_SHRINK_OPERATIONS_H_
#define PAGED_KV_TESTS_SUPPORT_SHRINK_OPERATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/random_operations.h"
#include "tests/support/random_options.h"

namespace paged_kv::testing {

// Runs `operations` on a new cache with every check at every call. Returns the
// violation, empty if there is none; *steps is set to the operations run.
std::string RunOperations(const RandomCache& cache,
                          const std::vector<Operation>& operations,
                          size_t* steps);

// Leaves out operations (Zeller's ddmin, 2002, by halves down to single ones)
// as long as what is left still violates something, and returns what is left
// as C++ with its violation, to paste into a regression test.
std::string ShrinkOperations(const RandomCache& cache,
                             std::vector<Operation> operations);

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_SHRINK_OPERATIONS_H_
