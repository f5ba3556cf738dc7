// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERIAL_REPLAY_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERIAL_REPLAY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_result.h"
#include "benchmarks/tool/step_time_model.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

struct SerialOptions {
  StepTimeModel model;  // weighs the moments of a request's life
  // Output tokens per step. 1 is what an engine does; larger steps leave the
  // same cache and the same final states behind, sooner, and sample the
  // time-weighted figures less often.
  uint32_t decode_step_tokens = 1;
};

// Pure cache behaviour: each request is prefilled in one step, decoded to its
// end and freed before the next one starts; arrival times are not used. A
// request that never fits is left out. Internal if the policy's accounting is
// broken.
absl::StatusOr<ReplayResult> ReplaySerially(const Trace& trace,
                                            const SerialOptions& options,
                                            MemoryPolicy& policy,
                                            Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERIAL_REPLAY_H_
