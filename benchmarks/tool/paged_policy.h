// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_PAGED_POLICY_H_
#define PAGED_KV_BENCHMARKS_TOOL_PAGED_POLICY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/kv_cache_options.h"

namespace paged_kv::tool {

// Options of a metadata-only manager for `trace`: one group with the shape of
// Qwen2.5-7B, `blocks` blocks, and room for every request of the trace.
KvCacheOptions ManagerOptions(const Trace& trace, uint32_t blocks,
                              uint32_t block_tokens, Eviction eviction,
                              bool share);

// The project's own manager behind the interface of the baselines, driven
// through its public header: every Admit and Grow is a step that is planned,
// committed and retired. Slot states are the manager's own. `trace` is
// borrowed.
absl::StatusOr<std::unique_ptr<MemoryPolicy>> MakePagedPolicy(
    const PolicyOptions& options, const Trace& trace);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_PAGED_POLICY_H_
