// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long a step of an engine takes, so that a trace can be replayed against
// its arrival times without the engine. A roofline (Williams, Waterman,
// Patterson 2009) of two rates:
//
//   time = max(flops / flops_per_second, bytes / bytes_per_second)
//
// Prefill is bound by the first: 2 flops per weight and token, and attention
// over the context. Decode is bound by the second: every step reads the
// weights once and the K/V of every sequence that it serves.
//
// The constants are those of Qwen2.5-7B in bf16 on one NVIDIA H100 SXM (989
// Tflop/s dense bf16 and 3.35 TB/s by its data sheet), of which 60 % and 80 %
// are taken as sustained. They are assumptions, which is why a replay shows
// what becomes of its result at half and twice each.

#ifndef PAGED_KV_BENCHMARKS_TOOL_STEP_TIME_MODEL_H_
#define PAGED_KV_BENCHMARKS_TOOL_STEP_TIME_MODEL_H_

#include <cstdint>

#include "absl/time/time.h"

namespace paged_kv::tool {

struct StepTimeModel {
  double flops_per_second = 0.6 * 989e12;
  double bytes_per_second = 0.8 * 3.35e12;

  // Qwen2.5-7B without the rows of the embedding table, of which a token
  // reads one.
  double weights = 7.07e9;
  double weight_bytes = 2 * 7.07e9;
  double kv_bytes_per_token = 57344;
  // 4 flops per layer (28), query head (28) and dimension (128).
  double flops_per_query_and_key = 4.0 * 28 * 28 * 128;
};

// What one step computes.
struct StepWork {
  uint64_t tokens = 0;         // queries, of prefill and of decode
  double query_key_pairs = 0;  // summed over the queries
  uint64_t kv_tokens = 0;      // whose K/V is read, summed over the sequences

  // A sequence computes `new_tokens` behind `context` that it already has.
  void Add(uint64_t context, uint64_t new_tokens);
};

absl::Duration StepTime(const StepTimeModel& model, const StepWork& work);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_STEP_TIME_MODEL_H_
