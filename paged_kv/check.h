// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Assertions for broken invariants of this library. What a caller can get
// wrong is an absl::Status instead.

#ifndef PAGED_KV_CHECK_H_
#define PAGED_KV_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace paged_kv::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line,
                                     const char* condition) {
  std::fprintf(stderr, "%s:%d: PagedKV invariant broken: %s\n", file, line,
               condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace paged_kv::internal

// Always on.
#define PAGED_KV_CHECK(condition)                    \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::paged_kv::internal::CheckFailed(__FILE__, __LINE__, #condition))

// Debug builds only; the condition is compiled but not evaluated in others.
#ifdef NDEBUG
#define PAGED_KV_DCHECK(condition) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define PAGED_KV_DCHECK(condition) PAGED_KV_CHECK(condition)
#endif

#endif  // PAGED_KV_CHECK_H_
