// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/model_demo.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/table.h"
#include "docs/examples/llm/engine/random_model.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kSystem[] =
    "You are a helpful AI assistant. You answer each question truthfully, in "
    "one short sentence, without lists or titles, and you say so when you do "
    "not know the answer.";

constexpr const char* kQuestions[] = {
    "What is the capital of France?",    "Why is the sky blue?",
    "How many legs does a spider have?", "What do bees make?",
    "How many days are in a week?",      "What is ice made of?"};

constexpr uint32_t kAnswerTokens = 40;

llm::ModelConfig TinyConfig() {
  llm::ModelConfig config;
  config.vocab = 512;
  config.hidden = 64;
  config.intermediate = 172;
  config.layers = 4;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = 8;
  config.max_context = 512;
  return config;
}

absl::StatusOr<std::vector<Prompt>> RealPrompts(const LoadedModel& model) {
  PromptOptions options;
  options.chat = true;
  options.system = kSystem;
  std::vector<Prompt> prompts;
  for (const char* question : kQuestions) {
    PAGED_KV_ASSIGN_OR_RETURN(Prompt prompt,
                              MakePrompt(model, question, options));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::vector<Prompt> RandomPrompts(const llm::ModelConfig& config,
                                  uint64_t seed) {
  Random random(seed);
  const auto append = [&](uint32_t tokens, std::vector<TokenId>* to) {
    for (uint32_t i = 0; i < tokens; ++i) {
      to->push_back(static_cast<TokenId>(random.Below(config.vocab)));
    }
  };
  std::vector<TokenId> system;
  append(64, &system);
  std::vector<Prompt> prompts;
  for (const char* question : kQuestions) {
    prompts.push_back({question, system});
    append(10, &prompts.back().tokens);
  }
  return prompts;
}

uint64_t SharedTokens(const std::vector<Prompt>& prompts) {
  size_t shared = prompts[0].tokens.size();
  for (const Prompt& prompt : prompts) {
    const auto& a = prompts[0].tokens;
    const auto& b = prompt.tokens;
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    shared = std::min(shared, static_cast<size_t>(end.first - a.begin()));
  }
  return shared;
}

}  // namespace

absl::StatusOr<ModelDemo> RunModelDemo(
    uint32_t threads, uint64_t seed, const std::function<bool()>& interrupted) {
  ModelDemo demo;
  ModelFlags flags;
  flags.threads = threads;
  flags.path = FetchedModelPath();
  demo.real = !flags.path.empty();
  LoadedModel model;
  if (demo.real) {
    PAGED_KV_ASSIGN_OR_RETURN(model, flags.Load());
    PAGED_KV_ASSIGN_OR_RETURN(demo.prompts, RealPrompts(model));
  } else {
    PAGED_KV_ASSIGN_OR_RETURN(
        model, PrepareModel(llm::MakeRandomModel(TinyConfig(),
                                                 llm::WeightType::kF32, seed),
                            threads));
    demo.prompts = RandomPrompts(model.config(), seed);
  }
  demo.model = model.name;
  demo.shared_tokens = SharedTokens(demo.prompts);
  GenerateOptions options;
  options.max_tokens = kAnswerTokens;
  GenerateHooks hooks;
  hooks.interrupted = interrupted;
  PAGED_KV_ASSIGN_OR_RETURN(demo.result,
                            Generate(model, demo.prompts, options, hooks));
  return demo;
}

std::string ModelDemoText(const ModelDemo& demo) {
  std::string text;
  for (size_t i = 0; i < demo.prompts.size(); ++i) {
    const auto& samples = demo.result.prompts[i].samples;
    if (samples.empty()) continue;
    absl::StrAppend(&text, "   ", demo.prompts[i].text, "\n     -> ");
    if (demo.real) {
      absl::StrAppend(&text,
                      absl::StrReplaceAll(samples[0].text, {{"\n", " "}}));
    } else {
      absl::StrAppend(&text, samples[0].tokens.size(), " tokens");
    }
    absl::StrAppend(&text, "\n");
  }
  const ServingStats& stats = demo.result.stats;
  absl::StrAppendFormat(
      &text,
      "\n   %s of %s prompt tokens came from the cache (%s begin every "
      "prompt);\n   %s tokens in %s steps, %.1f per second; scheduler, manager "
      "and page tables\n   took %s of the time.\n",
      Grouped(stats.cache.hit_tokens), Grouped(stats.cache.prompt_tokens),
      Grouped(demo.shared_tokens), Grouped(stats.scheduler.output_tokens),
      Grouped(stats.engine.steps), stats.OutputTokensPerSecond(),
      Percent(stats.OverheadShare(), 2));
  return text;
}

nlohmann::ordered_json ModelDemoJson(const ModelDemo& demo) {
  nlohmann::ordered_json answers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < demo.prompts.size(); ++i) {
    const auto& samples = demo.result.prompts[i].samples;
    if (samples.empty()) continue;
    answers.push_back({{"question", demo.prompts[i].text},
                       {"prompt_tokens", demo.prompts[i].tokens.size()},
                       {"answer", samples[0].text},
                       {"tokens", samples[0].tokens}});
  }
  return {{"model", demo.model},
          {"random_weights", !demo.real},
          {"shared_tokens", demo.shared_tokens},
          {"answers", answers},
          {"stats", ServingStatsJson(demo.result.stats)}};
}

}  // namespace paged_kv::tool
