// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/shrink_operations.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace paged_kv::testing {

std::string RunOperations(const RandomCache& cache,
                          const std::vector<Operation>& operations,
                          size_t* steps) {
  *steps = 0;
  LockstepOptions lockstep;
  lockstep.full_check_every = 1;
  lockstep.fingerprint_every = 1;
  auto pair = LockstepCache::Create(cache.options, lockstep);
  if (!pair.ok()) return pair.status().ToString();
  OperationRunner runner(pair->get(), cache.workload);
  for (const Operation& operation : operations) {
    ++*steps;
    runner.Run(operation);
    if ((*pair)->ok()) continue;
    return absl::StrCat((*pair)->violation(), "\nlast requests:\n",
                        runner.DescribeRequests());
  }
  return "";
}

std::string ShrinkOperations(const RandomCache& cache,
                             std::vector<Operation> operations) {
  size_t steps = 0;
  std::string violation = RunOperations(cache, operations, &steps);
  if (violation.empty()) return "the violation does not come again";
  operations.resize(steps);
  for (size_t piece = operations.size() / 2; piece > 0; piece /= 2) {
    for (size_t at = 0; at + piece <= operations.size();) {
      std::vector<Operation> without(operations.begin(),
                                     operations.begin() + at);
      without.insert(without.end(), operations.begin() + at + piece,
                     operations.end());
      std::string found = RunOperations(cache, without, &steps);
      if (found.empty()) {
        at += piece;
        continue;
      }
      without.resize(steps);
      operations = std::move(without);
      violation = std::move(found);
    }
  }
  std::ostringstream text;
  text << violation << operations.size() << " operations on " << cache.name
       << ":\n";
  for (const Operation& operation : operations) {
    text << "  " << operation << ",\n";
  }
  return text.str();
}

}  // namespace paged_kv::testing
