// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SCHEDULER_REPLAY_H_
#define PAGED_KV_BENCHMARKS_TOOL_SCHEDULER_REPLAY_H_

#include "absl/status/statusor.h"
#include "benchmarks/tool/concurrent_replay.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_result.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

// Replays a trace with the project's own BatchScheduler over its manager, on
// a clock that the step-time model moves. `policy.kind` is kPaged or
// kPagedNoShare. A request is handed to the scheduler when it arrives, or as
// soon after that as the scheduler has room for it.
//
// The last token of an answer is never computed, so a request's final length
// is here one less than in a serial replay. Internal if the accounting of the
// manager is broken.
absl::StatusOr<ReplayResult> ReplayWithScheduler(const Trace& trace,
                                                 const ServingOptions& options,
                                                 const PolicyOptions& policy,
                                                 Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SCHEDULER_REPLAY_H_
