// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/generate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

uint32_t OutputTokens(const Prompt& prompt, uint32_t max_tokens,
                      const llm::ModelConfig& config) {
  const auto room =
      config.max_context - static_cast<uint32_t>(prompt.tokens.size());
  return std::min(max_tokens, room);
}

absl::Status SubmitAll(llm::ServingEngine& engine,
                       absl::Span<const Prompt> prompts,
                       absl::Span<const TokenId> end_tokens,
                       const GenerateOptions& options) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    llm::EngineRequest request;
    request.id = RequestId(i);
    request.prompt = prompts[i].tokens;
    request.max_output_tokens =
        OutputTokens(prompts[i], options.max_tokens, engine.model().config());
    request.samples = options.samples;
    request.sampling = options.sampling;
    if (!options.ignore_end) request.stop_tokens = end_tokens;
    PAGED_KV_RETURN_IF_ERROR(engine.Submit(request));
  }
  return absl::OkStatus();
}

void CancelAll(llm::ServingEngine& engine, size_t requests) {
  for (size_t i = 0; i < requests; ++i) {
    // One that has ended already says so; that is fine.
    engine.Cancel(RequestId(i)).IgnoreError();
  }
}

GeneratedPrompt ResultOf(const LoadedModel& model, const Prompt& prompt,
                         const FinishedRequest& finished) {
  GeneratedPrompt result;
  for (size_t sample = 0; sample < finished.samples.size(); ++sample) {
    const absl::Span<const TokenId> tokens = finished.Output(sample);
    GeneratedText text;
    text.tokens.assign(tokens.begin(), tokens.end());
    if (model.tokenizer != nullptr) {
      text.text = model.tokenizer->Decode(tokens, prompt.text.empty());
    }
    text.reason = finished.samples[sample].reason;
    result.samples.push_back(std::move(text));
  }
  const auto since_arrival = [&](absl::Time time) {
    return absl::ToDoubleSeconds(time - finished.timing.arrival);
  };
  if (finished.timing.first_token != absl::InfiniteFuture()) {
    result.first_token_s = since_arrival(finished.timing.first_token);
  }
  result.finished_s = since_arrival(finished.timing.finished);
  return result;
}

llm::EngineOptions EngineOptionsOf(const LoadedModel& model,
                                   absl::Span<const Prompt> prompts,
                                   const GenerateOptions& options) {
  const llm::ModelConfig& config = model.config();
  BatchLoad load;
  for (const Prompt& prompt : prompts) {
    load.longest = std::max(
        load.longest, static_cast<uint32_t>(prompt.tokens.size()) +
                          OutputTokens(prompt, options.max_tokens, config));
  }
  load.sequences = uint64_t{options.samples} * prompts.size();
  load.requests = static_cast<uint32_t>(prompts.size());
  llm::EngineOptions engine = EngineOptionsFor(options, load);
  // Prompts that are given together are likely to begin alike, and nobody
  // minds a step's wait.
  engine.scheduler.prefix_wait_min_tokens = engine.cache.block_tokens;
  engine.attention = model.backend.Factory(model.threads.get());
  return engine;
}

}  // namespace

absl::StatusOr<GenerateResult> Generate(LoadedModel& model,
                                        absl::Span<const Prompt> prompts,
                                        const GenerateOptions& options,
                                        const GenerateHooks& hooks) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::unique_ptr<llm::ServingEngine> engine,
      llm::ServingEngine::Create(model.model.get(),
                                 EngineOptionsOf(model, prompts, options),
                                 model.threads.get()));
  ServingMeter meter(engine.get());
  PAGED_KV_RETURN_IF_ERROR(
      SubmitAll(*engine, prompts, EndTokens(model), options));
  GenerateResult result;
  result.prompts.resize(prompts.size());
  while (!engine->Idle()) {
    if (hooks.interrupted && hooks.interrupted()) {
      result.interrupted = true;
      CancelAll(*engine, prompts.size());
      break;
    }
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const llm::EmittedToken> emitted,
                              engine->Step());
    meter.AfterStep();
    if (hooks.after_step) hooks.after_step(*engine, emitted);
  }
  while (const auto finished = engine->TakeFinished()) {
    PAGED_KV_RETURN_IF_ERROR(finished->status);
    const size_t i = finished->id.value();
    result.prompts[i] = ResultOf(model, prompts[i], *finished);
  }
  result.stats = meter.Finish();
  result.stats.program_bytes = model.program_bytes;
  result.stats.card_text = model.backend.Text();
  result.stats.card = model.backend.Json();
  return result;
}

}  // namespace paged_kv::tool
