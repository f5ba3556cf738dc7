// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_DEMO_SERVING_H_
#define PAGED_KV_BENCHMARKS_TOOL_DEMO_SERVING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/progress.h"
#include "paged_kv/types.h"

namespace paged_kv::tool {

// A batch of requests that begin alike, as with a common system prompt.
struct DemoServingOptions {
  bool share = true;  // equal prefixes of prompts
  uint64_t seed = 1;
  uint32_t requests = 12;
  uint32_t common_tokens = 512;  // every prompt begins with them
  uint32_t own_tokens = 64;      // at most; between half of it and all
  uint32_t output_tokens = 48;
  uint32_t layers = 4;
  uint32_t threads = 2;
};

struct DemoServingResult {
  std::vector<std::vector<TokenId>> answers;  // [requests][output_tokens]
  uint64_t prompt_tokens = 0;
  uint64_t computed_prompt_tokens = 0;
  uint64_t steps = 0;
  uint64_t peak_blocks = 0;
  uint64_t block_bytes = 0;    // K and V of one block in all layers
  double prefill_seconds = 0;  // of the steps that computed prompts
  double decode_seconds = 0;   // of the others
  uint64_t decode_tokens = 0;  // of the others
  // Largest difference from attention in double precision over the same K/V,
  // over all rows and heads of the steps that were checked.
  double max_attention_error = 0;
  uint64_t checked_steps = 0;
};

// Serves the batch for real: scheduler, manager, pages in host memory, K and V
// written into them, attention over them (the heads of Qwen2.5-7B: 28 query,
// 4 KV, 128 dimensions, bf16). The model around the attention is made up:
// projections are random features of token and position, and the next token is
// the best of random logits of the attention's output, so that answers depend
// on everything that was read from the pages.
absl::StatusOr<DemoServingResult> ServeDemoBatch(
    const DemoServingOptions& options, Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_DEMO_SERVING_H_
