// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long prefill and decode take, by the length of the prompt.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/serving/curve_fit.h"
#include "benchmarks/tool/serving/lengths_kernel.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "docs/examples/llm/engine/stage_times.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// Prompts of one length, served as one batch.
struct LengthsCase {
  std::string name;             // "1,000 tokens", "50 sentences"
  std::string text;             // empty: the tokens alone
  std::vector<TokenId> tokens;  // of the prompt
  uint32_t batch = 1;
  double tokenize_s = 0;
};

struct LengthsOptions {
  llm::ModelCacheOptions cache;
  uint32_t output_tokens = 100;
  uint32_t step_tokens = 512;       // a chunk of prefill, over the whole batch
  llm::AttentionFactory attention;  // empty: the processor's kernels
  // Let the attention kernel alone take turns with the decode steps.
  bool kernel_turns = false;
  uint64_t seed = 1;  // of its values
};

// Where the time of a phase went.
struct PhaseTimes {
  double wall_s = 0;
  double manager_s = 0;  // plan, commit, retire
  double tables_s = 0;
  llm::StageTimes forward;
  double sample_s = 0;
};

struct LengthsRow {
  LengthsCase length;
  uint32_t output_tokens = 0;
  PhaseTimes prefill;  // until the first token of all
  PhaseTimes decode;   // of the others
  double detokenize_s = 0;
  std::vector<TokenId> outputs;  // step by step, [output_tokens, batch]
  KernelComparison kernel;       // empty unless asked for
  uint64_t kv_bytes = 0;         // of the batch, at the end
  uint64_t step_read_bytes =
      0;  // weights and mean K/V that a decode step reads

  uint64_t PromptTokens() const { return length.tokens.size(); }
  double DecodeStepSeconds() const;
};

struct LengthsResult {
  std::string model;
  std::string model_file;
  llm::ModelConfig config;
  uint64_t kv_bytes_per_token = 0;
  uint64_t weight_bytes = 0;
  double stream_rate = 0;  // bytes per second that these threads read at best
  std::vector<LengthsRow> rows;
  bool interrupted = false;
};

// Batches of one size: prefill seconds = a + b n + c n^2, decode seconds per
// step = a + b n, n the prompt's tokens. Nothing for too few lengths.
struct LengthsFit {
  uint32_t batch = 1;
  absl::optional<Polynomial> prefill;
  absl::optional<Polynomial> decode;
  double longest = 0;
};

// Runs one case: all prompts in chunks, sequence after sequence, then
// output_tokens - 1 steps of the whole batch. Nothing is shared.
// `interrupted` is asked before each step; Cancelled if it says yes.
absl::StatusOr<LengthsRow> MeasureLength(
    LoadedModel& model, const LengthsCase& length,
    const LengthsOptions& options, const std::function<bool()>& interrupted);

// Bytes per second at which the threads read memory in order.
absl::StatusOr<double> MeasureStreamRate(attention::ParallelFor& parallel);

std::vector<LengthsFit> FitLengths(const std::vector<LengthsRow>& rows);

std::string LengthsText(const LengthsResult& result);
nlohmann::ordered_json LengthsJson(const LengthsResult& result, uint64_t seed);
Plot LengthsPlot(const LengthsResult& result);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_H_
