// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CONCURRENT_REPLAY_H_
#define PAGED_KV_BENCHMARKS_TOOL_CONCURRENT_REPLAY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_result.h"
#include "benchmarks/tool/step_time_model.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

struct ServingOptions {
  StepTimeModel model;
  uint32_t max_running = 256;   // requests in one step
  uint32_t step_tokens = 8192;  // computed in one step at most
  // Everything arrives at once, so that memory alone decides how many run.
  bool ignore_arrivals = false;
};

// Many requests at a time over any policy, by the plainest continuous batching
// that treats all policies alike:
//   1. every running request whose prompt is done gets its next token, in
//      order of admission;
//   2. the rest of the step's tokens goes to prompts, in chunks: those under
//      way, then waiting requests in order of arrival, as long as the slots
//      available now cover all prompts under way and the new one;
//   3. a request that finds no memory for its next token makes the latest
//      admitted one give way: that is released, goes back to the head of the
//      queue and computes its tokens again later. A prompt that finds no
//      memory waits, unless the step would be empty.
// A step lasts as long as StepTime() says; time in which nothing runs counts
// for no average. `paged` traces are replayed with the project's own
// scheduler instead (scheduler_replay.h); this loop is for comparisons.
//
// A request that never fits is left out. Internal if the policy's accounting
// is broken or nothing can run though it should.
absl::StatusOr<ReplayResult> ReplayConcurrently(const Trace& trace,
                                                const ServingOptions& options,
                                                MemoryPolicy& policy,
                                                Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CONCURRENT_REPLAY_H_
