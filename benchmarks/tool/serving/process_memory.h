// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_PROCESS_MEMORY_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_PROCESS_MEMORY_H_

#include <cstdint>

namespace paged_kv::tool {

// Bytes of this process in memory, now and at most so far; 0 where the system
// does not tell.
uint64_t ProcessBytes();
uint64_t PeakProcessBytes();
// Bytes that malloc has given out.
uint64_t HeapBytes();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_PROCESS_MEMORY_H_
