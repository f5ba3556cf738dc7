// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
    const absl::Status status = engine.Submit(request);
    if (absl::IsOutOfRange(status)) {
      return absl::OutOfRangeError(absl::StrCat(
          status.message(), "; raise --pool_blocks or lower --max_tokens"));
    }
    PAGED_KV_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

void CancelAll(llm::ServingEngine& engine, size_t requests) {
  for (size_t i = 0; i < requests; ++i) {
    // One that has ended already says so; that is fine.
    engine.Cancel(RequestId(i)).IgnoreError();
  }
}

GeneratedText TextOf(const LoadedModel& model, const Prompt& prompt,
                     absl::Span<const TokenId> tokens, FinishReason reason) {
  GeneratedText text;
  text.tokens.assign(tokens.begin(), tokens.end());
  if (model.tokenizer != nullptr) {
    text.text = model.tokenizer->Decode(tokens, prompt.text.empty());
  }
  text.reason = reason;
  return text;
}

GeneratedPrompt ResultOf(const LoadedModel& model, const Prompt& prompt,
                         const FinishedRequest& finished) {
  GeneratedPrompt result;
  for (size_t sample = 0; sample < finished.samples.size(); ++sample) {
    result.samples.push_back(TextOf(model, prompt, finished.Output(sample),
                                    finished.samples[sample].reason));
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

absl::Status CheckBeams(const GenerateOptions& options) {
  if (options.beams == 0) return absl::OkStatus();
  if (options.samples > 1 || options.sampling.temperature > 0 ||
      options.draft_tokens > 0) {
    return absl::InvalidArgumentError(
        "beam search draws and guesses nothing: --beam goes without --n, "
        "--temperature and --speculate");
  }
  return absl::OkStatus();
}

// Beam search, prompt by prompt.
class BeamRun {
 public:
  BeamRun(LoadedModel& model, llm::ServingEngine* engine,
          const GenerateOptions& options, const GenerateHooks& hooks)
      : model_(model),
        engine_(engine),
        options_(options),
        hooks_(hooks),
        end_tokens_(EndTokens(model)) {}

  absl::Status Run(absl::Span<const Prompt> prompts, GenerateResult* result) {
    for (size_t i = 0; i < prompts.size() && !result->interrupted; ++i) {
      PAGED_KV_RETURN_IF_ERROR(RunOne(prompts[i], result, &result->prompts[i]));
    }
    return absl::OkStatus();
  }

  // Adds what the scheduler, which took no part, would have counted.
  void AddTo(ServingStats* stats) const {
    stats->scheduler.computed_tokens += computed_tokens_;
    stats->scheduler.output_tokens += output_tokens_;
    stats->beam_forks = forks_;
  }

 private:
  absl::Status RunOne(const Prompt& prompt, GenerateResult* result,
                      GeneratedPrompt* generated) {
    llm::BeamRequest request;
    request.prompt = prompt.tokens;
    request.beams = options_.beams;
    request.max_output_tokens =
        OutputTokens(prompt, options_.max_tokens, model_.config());
    if (!options_.ignore_end) request.stop_tokens = end_tokens_;
    request.step_tokens = options_.step_tokens;
    const double begin = Now();
    request.after_step = [&](absl::Span<const llm::Beam>) {
      if (generated->first_token_s == 0) {
        generated->first_token_s = Now() - begin;
      }
      result->interrupted = hooks_.interrupted && hooks_.interrupted();
      return !result->interrupted;
    };
    PAGED_KV_ASSIGN_OR_RETURN(const llm::BeamResult found,
                              engine_->SearchBeams(request));
    generated->finished_s = Now() - begin;
    for (const llm::Beam& beam : found.beams) {
      generated->samples.push_back(
          TextOf(model_, prompt, beam.tokens, beam.reason));
      generated->samples.back().score = beam.score;
      output_tokens_ += beam.tokens.size();
    }
    computed_tokens_ += found.computed_tokens;
    forks_ += found.forks;
    return absl::OkStatus();
  }

  static double Now() {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  LoadedModel& model_;
  llm::ServingEngine* const engine_;
  const GenerateOptions& options_;
  const GenerateHooks& hooks_;
  const std::vector<TokenId> end_tokens_;
  uint64_t computed_tokens_ = 0;
  uint64_t output_tokens_ = 0;
  uint64_t forks_ = 0;
};

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
  load.sequences = options.beams > 0
                       ? options.beams
                       : uint64_t{options.samples} * prompts.size();
  load.requests = static_cast<uint32_t>(prompts.size());
  BatchOptions batch = options;
  batch.batch = std::max(batch.batch, options.beams);
  llm::EngineOptions engine = EngineOptionsFor(batch, load);
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
  PAGED_KV_RETURN_IF_ERROR(CheckBeams(options));
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::unique_ptr<llm::ServingEngine> engine,
      llm::ServingEngine::Create(model.model.get(),
                                 EngineOptionsOf(model, prompts, options),
                                 model.threads.get()));
  const ServingMeter meter(engine.get());
  GenerateResult result;
  result.prompts.resize(prompts.size());
  const auto take_stats = [&] {
    result.stats = meter.Finish();
    result.stats.program_bytes = model.program_bytes;
    result.stats.card_text = model.backend.Text();
    result.stats.card = model.backend.Json();
  };
  if (options.beams > 0) {
    BeamRun run(model, engine.get(), options, hooks);
    PAGED_KV_RETURN_IF_ERROR(run.Run(prompts, &result));
    take_stats();
    run.AddTo(&result.stats);
    return result;
  }
  PAGED_KV_RETURN_IF_ERROR(
      SubmitAll(*engine, prompts, EndTokens(model), options));
  while (!engine->Idle()) {
    if (hooks.interrupted && hooks.interrupted()) {
      result.interrupted = true;
      CancelAll(*engine, prompts.size());
      break;
    }
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<const llm::EmittedToken> emitted,
                              engine->Step());
    if (hooks.after_step) hooks.after_step(*engine, emitted);
  }
  while (const auto finished = engine->TakeFinished()) {
    PAGED_KV_RETURN_IF_ERROR(finished->status);
    const size_t i = finished->id.value();
    result.prompts[i] = ResultOf(model, prompts[i], *finished);
  }
  take_stats();
  return result;
}

}  // namespace paged_kv::tool
