// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// `pagedkv lengths --compare`: what the cache, flash attention and batching
// each are good for.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_COMPARE_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_COMPARE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/serving/lengths.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "benchmarks/tool/serving/serve_run.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// A token of greedy decoding at this context, with the K/V of all before it in
// the cache and computed again from the tokens.
struct RecomputeRow {
  uint64_t context = 0;    // tokens of the prompt
  uint32_t generated = 0;  // tokens, by each way
  double cached_s = 0;     // per token
  double recomputed_s = 0;
  uint32_t equal_tokens = 0;  // of `generated`
};

// Attention of a whole prompt in one layer: with all scores in memory
// (NaiveAttention), and by the kernels over pages.
struct PrefillRow {
  uint64_t tokens = 0;
  double naive_s = 0;
  double flash_s = 0;
  // Memory taken for it beside inputs and outputs.
  uint64_t naive_bytes = 0;
  uint64_t flash_bytes = 0;
  double largest_difference = 0;  // of all outputs
};

struct CompareResult {
  std::string model;
  std::string model_file;
  std::vector<RecomputeRow> recompute;
  std::vector<PrefillRow> prefill;
  std::vector<ServeResult> batching;  // one workload by none, static, dynamic
  std::string trace_sha256;           // of the file of its lengths, or empty
  bool interrupted = false;
};

// Prompt, then `generated` tokens. Cancelled if `interrupted` says so.
absl::StatusOr<RecomputeRow> CompareRecompute(
    LoadedModel& model, const LengthsCase& length, uint32_t generated,
    const LengthsOptions& options, const std::function<bool()>& interrupted);

// Random q, k and v of the model's shape; K/V in pages of f32, so that the
// outputs differ by rounding alone. The best of three.
absl::StatusOr<PrefillRow> ComparePrefill(const llm::ModelConfig& config,
                                          uint32_t tokens,
                                          uint32_t block_tokens, uint64_t seed,
                                          attention::ParallelFor& parallel);

struct CompareOptions {
  LengthsOptions lengths;
  std::vector<uint32_t> tokens;  // of prompts
  uint32_t generated = 4;
  uint32_t requests = 32;
  std::string trace_path;  // to take their lengths from; may be empty
  uint64_t seed = 1;
};

// All three; prompts are random tokens, the requests have the lengths of a
// trace or are like Azure conversations, prompts cut to 256 tokens. Lengths
// that do not fit the model's context are left out; InvalidArgument if none
// fits. `progress` hears what is measured. What was measured until
// `interrupted` said yes is returned.
absl::StatusOr<CompareResult> Compare(
    LoadedModel& model, const CompareOptions& options,
    const std::function<bool()>& interrupted,
    const std::function<void(const std::string&)>& progress);

std::string CompareText(const CompareResult& result);
nlohmann::ordered_json CompareJson(const CompareResult& result, uint64_t seed);
Plot ComparePlot(const CompareResult& result);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_COMPARE_H_
