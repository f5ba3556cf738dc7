// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/attention_environment.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "paged_kv/check.h"

namespace paged_kv::attention::testing {

uint64_t EnvironmentNumber(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  uint64_t value = 0;
  PAGED_KV_CHECK(absl::SimpleAtoi(text, &value));
  return value;
}

}  // namespace paged_kv::attention::testing
