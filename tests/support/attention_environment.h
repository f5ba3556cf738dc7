// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_ATTENTION_ENVIRONMENT_H_
#define PAGED_KV_TESTS_SUPPORT_ATTENTION_ENVIRONMENT_H_

#include <cstdint>

namespace paged_kv::attention::testing {

// The number in an environment variable; `otherwise` if there is none. Aborts
// on one that is not a number, lest a mistyped seed pass for the default.
uint64_t EnvironmentNumber(const char* name, uint64_t otherwise);

}  // namespace paged_kv::attention::testing

#endif  // PAGED_KV_TESTS_SUPPORT_ATTENTION_ENVIRONMENT_H_
