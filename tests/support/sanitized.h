// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_SUPPORT_SANITIZED_H_
#define PAGED_KV_TESTS_SUPPORT_SANITIZED_H_

namespace paged_kv {

// Whether GCC's address or thread sanitizer watches this program. What is many
// times slower then does fewer rounds: the memory accesses of all are the same
// ones, and the results of every round are compared without a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace paged_kv

#endif  // PAGED_KV_TESTS_SUPPORT_SANITIZED_H_
