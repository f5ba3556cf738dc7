// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_PREFETCH_H_
#define PAGED_KV_PREFETCH_H_

namespace paged_kv::internal {

// Asks for the cache line of `address`, which need not be mapped.
inline void PrefetchLine(const void* address) {
  __builtin_prefetch(address);
  // GCC takes a function that does nothing but prefetch for one without
  // effects, and drops the calls of it that it has not inlined by then.
  asm volatile("");
}

}  // namespace paged_kv::internal

#endif  // PAGED_KV_PREFETCH_H_
