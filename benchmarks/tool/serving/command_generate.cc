// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/serving/cache_trace.h"
#include "benchmarks/tool/serving/generate.h"
#include "benchmarks/tool/serving/interrupt.h"
#include "benchmarks/tool/serving/sampling_flags.h"
#include "docs/examples/llm/tokenizer/streaming_decoder.h"
#include "nlohmann/json.hpp"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Runs a language model over the paged cache: tokenizes the prompts, fills\n"
    "the cache with them, decodes token by token and streams the text. "
    "Several\n"
    "prompts, or samples of one, are served together and share the K and V of\n"
    "equal beginnings.\n"
    "\n"
    "Ctrl-C ends with what is there and the statistics.\n"
    "\n"
    "Examples:\n"
    "  pagedkv generate --prompt='The capital of France is' --max_tokens=20\n"
    "  pagedkv generate --chat --prompt='Why is the sky blue?' --stats\n"
    "  pagedkv generate --model=stories260K.bin --prompt='Once' \\\n"
    "      --temperature=0.8 --n=3 --seed=7\n"
    "  pagedkv generate --prompt='One, two,' --max_tokens=4 --trace_cache\n"
    "  pagedkv generate --prompt='a b c a b c' --speculate --stats\n"
    "  pagedkv generate --prompt='Once upon a time' --beam=4 --max_tokens=20";

const char* ReasonText(FinishReason reason) {
  return reason == FinishReason::kStopToken ? "end" : FinishReasonName(reason);
}

nlohmann::ordered_json GenerateJson(const LoadedModel& model,
                                    const std::vector<Prompt>& prompts,
                                    const GenerateResult& result, uint64_t seed,
                                    bool beams) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (size_t i = 0; i < prompts.size(); ++i) {
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (const GeneratedText& sample : result.prompts[i].samples) {
      samples.push_back({{"text", sample.text},
                         {"tokens", sample.tokens},
                         {"reason", FinishReasonName(sample.reason)}});
      if (beams) samples.back()["score"] = sample.score;
    }
    all.push_back({{"prompt", prompts[i].text},
                   {"prompt_tokens", prompts[i].tokens.size()},
                   {"samples", samples},
                   {"time_to_first_token_s", result.prompts[i].first_token_s},
                   {"finished_s", result.prompts[i].finished_s}});
  }
  return {{"schema_version", kJsonSchemaVersion},
          {"command", "generate"},
          {"model", model.name},
          {"model_file", model.path},
          {"seed", seed},
          {"load_s", model.load_s},
          {"interrupted", result.interrupted},
          {"prompts", all},
          {"stats", ServingStatsJson(result.stats)}};
}

class GenerateCommand : public Command {
 public:
  std::string name() const override { return "generate"; }
  std::string summary() const override {
    return "Continue prompts with a language model over the paged cache";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    prompts_.AddTo(app);
    model_.AddTo(app);
    AddNumber(app, "--max_tokens", &options_.max_tokens, 1, 1u << 20,
              "Tokens to generate at most")
        ->group("Generation");
    AddNumber(app, "--n", &options_.samples, 1, 64,
              "Continuations of each prompt")
        ->group("Generation");
    AddNumber(app, "--beam", &options_.beams, 0, 64,
              "Search for the most likely continuations with N beams; 0: no")
        ->group("Generation");
    AddSamplingFlags(app, &options_.sampling);
    app.add_flag("--ignore_end", options_.ignore_end,
                 "Go on behind the token that ends a text")
        ->group("Generation");
    kv_.AddTo(app);
    AddBatchFlags(app, "Serving", &options_);
    app.add_flag("--stats", stats_, "Show times, cache and memory at the end")
        ->group("Output");
    app.add_flag("--trace_cache", trace_cache_,
                 "Show how the cache grows, step by step, instead of streaming")
        ->group("Output");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    PAGED_KV_ASSIGN_OR_RETURN(LoadedModel model, model_.Load());
    PAGED_KV_ASSIGN_OR_RETURN(const std::vector<Prompt> prompts,
                              prompts_.Load(model));
    if (trace_cache_ && options_.beams > 0) {
      return absl::InvalidArgumentError(
          "--trace_cache shows the scheduler's steps, --beam has its own");
    }
    options_.cache = kv_.options;
    options_.sampling.seed = common_.seed;
    const InterruptGuard interrupt;
    GenerateHooks hooks;
    hooks.interrupted = [&] { return interrupt.interrupted(); };
    const bool stream = Streams(prompts);
    llm::StreamingDecoder decoder(model.tokenizer.get(),
                                  prompts[0].text.empty());
    if (trace_cache_ && !common_.json) {
      hooks.after_step = [&, first = true](const llm::ServingEngine& engine,
                                           const auto&) mutable {
        if (first) streams.out << CacheTraceLegend(engine) << "\n";
        first = false;
        streams.out << CacheTraceStep(engine) << std::flush;
      };
    } else if (stream) {
      hooks.after_step = [&, first = true](const llm::ServingEngine&,
                                           const auto& emitted) mutable {
        if (first) streams.out << Shown(prompts[0]);
        first = false;
        for (const llm::EmittedToken& token : emitted) {
          streams.out << decoder.Next(token.token) << std::flush;
        }
      };
    }
    PAGED_KV_ASSIGN_OR_RETURN(const GenerateResult result,
                              Generate(model, prompts, options_, hooks));
    if (stream) streams.out << decoder.Finish() << "\n";
    Report(streams, model, prompts, result, stream);
    return kExitOk;
  }

 private:
  // Text that comes as it is made is readable for one continuation alone.
  bool Streams(const std::vector<Prompt>& prompts) const {
    return prompts.size() == 1 && options_.samples == 1 &&
           options_.beams == 0 && !common_.json && !trace_cache_;
  }

  void Report(ToolStreams& streams, const LoadedModel& model,
              const std::vector<Prompt>& prompts, const GenerateResult& result,
              bool streamed) const {
    if (common_.json) {
      streams.out << GenerateJson(model, prompts, result, common_.seed,
                                  options_.beams > 0)
                         .dump(2, ' ', false,
                               nlohmann::json::error_handler_t::replace)
                  << "\n";
      return;
    }
    if (!streamed) streams.out << Texts(prompts, result);
    if (result.interrupted) streams.out << "(interrupted)\n";
    if (!stats_ && !result.interrupted) return;
    streams.out << absl::StrFormat(
        "\n%s, loaded in %.2f s; first token after %.3f s\n", model.name,
        model.load_s, result.prompts[0].first_token_s);
    streams.out << ServingStatsText(result.stats);
  }

  // A prompt as it stands before its continuation, or before its answer.
  std::string Shown(const Prompt& prompt) const {
    return absl::StrCat(prompt.text, prompts_.options.chat ? "\n" : "");
  }

  std::string Texts(const std::vector<Prompt>& prompts,
                    const GenerateResult& result) const {
    std::string text;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto& samples = result.prompts[i].samples;
      for (size_t sample = 0; sample < samples.size(); ++sample) {
        absl::StrAppend(&text, "[", i + 1,
                        samples.size() > 1 ? absl::StrCat(".", sample + 1) : "",
                        "; ", samples[sample].tokens.size(), " tokens, ",
                        ReasonText(samples[sample].reason), "] ",
                        Shown(prompts[i]), samples[sample].text, "\n");
      }
    }
    return text;
  }

  CommonFlags common_;
  ModelFlags model_;
  KvFlags kv_;
  PromptFlags prompts_;
  GenerateOptions options_;
  bool stats_ = false;
  bool trace_cache_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() {
  return std::make_unique<GenerateCommand>();
}

}  // namespace paged_kv::tool
