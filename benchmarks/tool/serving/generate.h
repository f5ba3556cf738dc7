// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_GENERATE_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_GENERATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "benchmarks/tool/serving/batch_options.h"
#include "benchmarks/tool/serving/model_flags.h"
#include "benchmarks/tool/serving/prompts.h"
#include "benchmarks/tool/serving/serving_stats.h"
#include "docs/examples/llm/engine/sampling.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "paged_kv/batch_scheduler_request.h"

namespace paged_kv::tool {

struct GenerateOptions : BatchOptions {
  llm::SamplingOptions sampling;
  uint32_t max_tokens = 128;
  uint32_t samples = 1;
  uint32_t beams = 0;  // above 0: beam search for so many, prompt by prompt
  bool ignore_end = false;  // go on behind the model's end tokens
};

// One continuation of a prompt.
struct GeneratedText {
  std::vector<TokenId> tokens;  // without the prompt
  std::string text;
  FinishReason reason = FinishReason::kUnfinished;
  double score = 0;  // of a beam: sum of its tokens' log probabilities
};

struct GeneratedPrompt {
  std::vector<GeneratedText> samples;
  double first_token_s = 0;  // since the start; of the first sample
  double finished_s = 0;
};

struct GenerateResult {
  std::vector<GeneratedPrompt> prompts;  // in the order given
  ServingStats stats;
  bool interrupted = false;
};

// What happens while it runs.
struct GenerateHooks {
  // After each step, with what it sampled. Not called by beam search, which
  // knows what it has said only in the end.
  std::function<void(const llm::ServingEngine&,
                     absl::Span<const llm::EmittedToken>)>
      after_step;
  // Asked before each step; true cancels all that is not done.
  std::function<bool()> interrupted;
};

// Serves all prompts together and returns their continuations, each as long as
// max_tokens and the model's context allow. The request ids are the prompts'
// indices. With beams, searches for one prompt after the other, best beam
// first. OutOfRange: a prompt does not fit the pool. InvalidArgument: beams
// together with what draws tokens or guesses them.
absl::StatusOr<GenerateResult> Generate(LoadedModel& model,
                                        absl::Span<const Prompt> prompts,
                                        const GenerateOptions& options,
                                        const GenerateHooks& hooks);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_GENERATE_H_
