// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/kernels/attention_flags.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/serving/interrupt.h"
#include "benchmarks/tool/serving/lengths.h"
#include "benchmarks/tool/serving/lengths_compare.h"
#include "benchmarks/tool/serving/model_shapes.h"
#include "benchmarks/tool/table.h"
#include "docs/examples/llm/engine/random_model.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Measures prefill and decode against the length of the prompt: some "
    "repeats of\na sentence, then given numbers of tokens, for each size of "
    "batch. Shows where\nthe time goes, from tokenizing to detokenizing, fits "
    "prefill = a + b n + c n^2\nand decode = a + b n, and compares decode with "
    "reading its weights and K/V.\nNothing is shared between sequences. "
    "Lengths that do not fit the model's\ncontext, or the budget of a row, are "
    "left out.\n"
    "\n"
    "With --shape the weights are random: how long a product takes does not "
    "depend\non its values.\n"
    "\n"
    "Examples:\n"
    "  pagedkv lengths --plot=lengths.svg\n"
    "  pagedkv lengths --shape=qwen2.5-7b --layers=2 --batch=1 "
    "--output_tokens=20\n"
    "  pagedkv lengths --lengths=512,1024,2048,4096 --repeats= --json\n"
    "  pagedkv lengths --lengths=1000,4000 --repeats= --kernel\n"
    "  pagedkv lengths --compare --lengths=128,256,512,1024,2048 "
    "--plot=compare.png";

constexpr char kSentence[] =
    "The quick brown fox jumps over the lazy dog while the river runs to the "
    "sea. ";

class LengthsCommand : public Command {
 public:
  std::string name() const override { return "lengths"; }
  std::string summary() const override {
    return "Measure prefill and decode by the length of the prompt";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    AddLengthFlags(app);
    model_.AddTo(app);
    AddText(app, "--shape", &shape_, ShapeNames(),
            "A model of these sizes with random weights, in place of a file")
        ->group("Model");
    AddNumber(app, "--layers", &layers_, 0, 1024,
              "Layers of --shape; 0: as many as it has")
        ->group("Model");
    AddNumber(app, "--step_tokens", &options_.step_tokens, 1, 1u << 20,
              "Prompt tokens computed per step at most")
        ->group("Serving");
    kv_.AddTo(app);
    app.add_flag("--kernel", options_.kernel_turns,
                 "Also measure decode attention of the engine against the "
                 "kernel alone")
        ->group("Lengths");
    app.add_flag("--compare", compare_,
                 "Instead: decoding with and without the cache, naive and "
                 "flash prefill, three ways of batching")
        ->group("Comparison");
    AddNumber(app, "--compare_tokens", &compare_tokens_, 1, 1024,
              "Tokens to decode with and without the cache")
        ->group("Comparison");
    AddNumber(app, "--compare_requests", &compare_requests_, 1, 10'000,
              "Requests to serve by each way of batching")
        ->group("Comparison");
    AddText(app, "--trace", &trace_path_, "FILE",
            "Take their lengths from this trace; else they are like those of "
            "Azure conversations")
        ->group("Comparison");
    AddText(app, "--plot", &plot_path_, "FILE.svg|FILE.png",
            "Draw both curves (needs gnuplot)")
        ->group("Output");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(plot_path_));
    }
    if (options_.kernel_turns && model_.backend.backend == Backend::kCard) {
      return absl::InvalidArgumentError(
          "--kernel measures the processor's attention; it goes with "
          "--backend=cpu");
    }
    PAGED_KV_ASSIGN_OR_RETURN(LoadedModel model, Load());
    options_.seed = common_.seed;
    options_.cache = kv_.options;
    options_.attention = model.backend.Factory(model.threads.get());
    if (compare_) return RunCompare(streams, model);
    PAGED_KV_ASSIGN_OR_RETURN(const std::vector<LengthsCase> cases,
                              Cases(model));
    LengthsResult result;
    PAGED_KV_RETURN_IF_ERROR(Measure(streams, model, cases, &result));
    if (common_.json) {
      nlohmann::ordered_json json = LengthsJson(result, common_.seed);
      json["card"] = model.backend.Json();
      streams.out << json.dump(2) << "\n";
    } else {
      streams.out << LengthsText(result) << model.backend.Text();
    }
    if (!plot_path_.empty() && !result.rows.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WritePlot(LengthsPlot(result), plot_path_));
    }
    return kExitOk;
  }

 private:
  void AddNumbers(CLI::App& app, const std::string& flag,
                  std::vector<uint32_t>* values, uint32_t max,
                  const std::string& help) {
    const auto parse =
        [flag,
         max](absl::string_view text) -> absl::StatusOr<std::vector<uint32_t>> {
      if (text.empty()) return std::vector<uint32_t>();
      absl::StatusOr<std::vector<uint32_t>> numbers =
          ParseNumbers(text, 1, max);
      if (numbers.ok()) return numbers;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, "=", numbers.status().message()));
    };
    AddChoice(app, flag, values, parse, "N[,N...]", absl::StrJoin(*values, ","),
              help)
        ->group("Lengths");
  }

  void AddLengthFlags(CLI::App& app) {
    AddNumbers(app, "--repeats", &repeats_, 100'000,
               "Repeats of a test sentence, where the model has a vocabulary");
    AddNumbers(app, "--lengths", &lengths_, 1u << 20, "Tokens of a prompt");
    AddNumbers(app, "--batch", &batches_, 1024, "Sequences at once");
    AddNumber(app, "--output_tokens", &options_.output_tokens, 1, 1u << 16,
              "Tokens to generate for each")
        ->group("Lengths");
    AddNumber(app, "--max_row_tokens", &max_row_tokens_, 1, 1u << 30,
              "Leave out what has more prompt tokens over its whole batch")
        ->group("Lengths");
  }

  absl::StatusOr<LoadedModel> Load() const {
    if (shape_.empty()) {
      if (layers_ != 0) {
        return absl::InvalidArgumentError("--layers needs --shape");
      }
      return model_.Load();
    }
    if (!model_.path.empty()) {
      return absl::InvalidArgumentError(
          "--model and --shape exclude each other; give one");
    }
    PAGED_KV_ASSIGN_OR_RETURN(llm::ModelConfig config, ShapeByName(shape_));
    std::string name = absl::StrCat(shape_, ", random weights");
    if (layers_ > config.layers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--layers=", layers_, ": ", shape_, " has ", config.layers));
    }
    if (layers_ != 0) {
      config.layers = layers_;
      absl::StrAppend(&name, ", ", layers_, " layers");
    }
    PAGED_KV_ASSIGN_OR_RETURN(
        LoadedModel model,
        PrepareModel(
            llm::MakeRandomModel(
                config, model_.weights.value_or(llm::WeightType::kBf16),
                common_.seed),
            model_.threads));
    model.name = name;
    PAGED_KV_ASSIGN_OR_RETURN(model.backend, model_.backend.Open());
    return model;
  }

  bool Fits(const LoadedModel& model, const LengthsCase& length) const {
    const uint64_t tokens = length.tokens.size();
    return tokens + options_.output_tokens <= model.config().max_context &&
           tokens * length.batch <= max_row_tokens_;
  }

  absl::StatusOr<std::vector<LengthsCase>> Cases(
      const LoadedModel& model) const {
    std::vector<LengthsCase> prompts;
    if (model.tokenizer != nullptr) {
      for (const uint32_t repeats : repeats_) {
        PAGED_KV_ASSIGN_OR_RETURN(LengthsCase length,
                                  SentenceCase(model, repeats));
        prompts.push_back(std::move(length));
      }
    }
    Random random(common_.seed);
    for (const uint32_t tokens : lengths_) {
      LengthsCase length;
      length.name = absl::StrCat(Grouped(tokens), " tokens");
      for (uint32_t i = 0; i < tokens; ++i) {
        length.tokens.push_back(
            static_cast<TokenId>(random.Below(model.config().vocab)));
      }
      prompts.push_back(std::move(length));
    }
    if (prompts.empty()) {
      return absl::InvalidArgumentError(
          model.tokenizer != nullptr
              ? "nothing to measure: give --repeats or --lengths"
              : "nothing to measure: give --lengths; --repeats needs a model "
                "with a tokenizer");
    }
    std::vector<LengthsCase> cases;
    for (const uint32_t batch : batches_) {
      for (const LengthsCase& prompt : prompts) {
        cases.push_back(prompt);
        cases.back().batch = batch;
        if (!Fits(model, cases.back())) cases.pop_back();
      }
    }
    if (!cases.empty()) return cases;
    return absl::InvalidArgumentError(absl::StrCat(
        "no length fits the model's context of ", model.config().max_context,
        " tokens and --max_row_tokens=", max_row_tokens_));
  }

  static absl::StatusOr<LengthsCase> SentenceCase(const LoadedModel& model,
                                                  uint32_t repeats) {
    LengthsCase length;
    length.name = absl::StrCat(Grouped(repeats), " sentences");
    for (uint32_t i = 0; i < repeats; ++i) length.text += kSentence;
    const auto begin = std::chrono::steady_clock::now();
    PAGED_KV_ASSIGN_OR_RETURN(length.tokens,
                              model.tokenizer->Encode(length.text));
    length.tokenize_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    return length;
  }

  absl::StatusOr<int> RunCompare(ToolStreams& streams,
                                 LoadedModel& model) const {
    const InterruptGuard interrupt;
    CompareOptions options;
    options.lengths = options_;
    options.tokens = lengths_;
    options.generated = compare_tokens_;
    options.requests = compare_requests_;
    options.trace_path = trace_path_;
    options.seed = common_.seed;
    Progress progress(common_.ProgressStream(streams));
    PAGED_KV_ASSIGN_OR_RETURN(
        const CompareResult result,
        Compare(
            model, options, [&] { return interrupt.interrupted(); },
            [&](const std::string& what) { progress.Start(what); }));
    if (common_.json) {
      streams.out << CompareJson(result, common_.seed).dump(2) << "\n";
    } else {
      streams.out << CompareText(result);
    }
    if (!plot_path_.empty() && !result.interrupted) {
      PAGED_KV_RETURN_IF_ERROR(WritePlot(ComparePlot(result), plot_path_));
    }
    return kExitOk;
  }

  absl::Status Measure(ToolStreams& streams, LoadedModel& model,
                       const std::vector<LengthsCase>& cases,
                       LengthsResult* result) const {
    const InterruptGuard interrupt;
    Progress progress(common_.ProgressStream(streams));
    result->model = model.name;
    result->model_file = model.path;
    result->config = model.config();
    result->kv_bytes_per_token =
        BytesPerToken(llm::CacheShape(model.config(), options_.cache.dtype,
                                      options_.cache.block_tokens))
            .value();
    result->weight_bytes = model.model->weight_bytes();
    progress.Start("measuring memory");
    PAGED_KV_ASSIGN_OR_RETURN(result->stream_rate,
                              MeasureStreamRate(*model.threads));
    for (size_t i = 0; i < cases.size(); ++i) {
      progress.Start(absl::StrCat(cases[i].name, ", batch ", cases[i].batch));
      progress.Update(i, cases.size());
      absl::StatusOr<LengthsRow> row = MeasureLength(
          model, cases[i], options_, [&] { return interrupt.interrupted(); });
      if (absl::IsCancelled(row.status())) {
        result->interrupted = true;
        break;
      }
      PAGED_KV_RETURN_IF_ERROR(row.status());
      result->rows.push_back(*std::move(row));
    }
    // Again: what a shared machine gives at best takes more than one look.
    PAGED_KV_ASSIGN_OR_RETURN(const double later,
                              MeasureStreamRate(*model.threads));
    result->stream_rate = std::max(result->stream_rate, later);
    return absl::OkStatus();
  }

  CommonFlags common_;
  ModelFlags model_;
  KvFlags kv_;
  LengthsOptions options_;
  std::vector<uint32_t> repeats_ = {10, 50, 100, 200};
  std::vector<uint32_t> lengths_ = {1000, 2000, 4000, 8000};
  std::vector<uint32_t> batches_ = {1, 4, 16};
  uint32_t max_row_tokens_ = 16384;
  std::string shape_;
  uint32_t layers_ = 0;
  bool compare_ = false;
  uint32_t compare_tokens_ = 4;
  uint32_t compare_requests_ = 32;
  std::string trace_path_;
  std::string plot_path_;
};

}  // namespace

std::unique_ptr<Command> MakeLengthsCommand() {
  return std::make_unique<LengthsCommand>();
}

}  // namespace paged_kv::tool
