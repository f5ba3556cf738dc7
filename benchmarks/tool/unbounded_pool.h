// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_UNBOUNDED_POOL_H_
#define PAGED_KV_BENCHMARKS_TOOL_UNBOUNDED_POOL_H_

#include <cstdint>

#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

// An "unbounded" pool is one that is large enough for the trace: no request
// ever waits for memory, and no cached block is ever evicted. This is its
// size in slots, an upper bound and not the least.
//
// `max_running`: requests that run at once; 1 for a serial replay. With
// `max_running` > 1 requests that run side by side may compute the same prefix
// twice, so nothing is taken off for sharing.
uint64_t UnboundedSlots(const Trace& trace, PolicyKind kind,
                        uint32_t block_tokens, uint32_t max_running);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_UNBOUNDED_POOL_H_
