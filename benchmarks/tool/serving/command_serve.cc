// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/serving/interrupt.h"
#include "benchmarks/tool/serving/sampling_flags.h"
#include "benchmarks/tool/serving/serve_report.h"
#include "benchmarks/tool/serving/serve_run.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Serves requests to a language model when they arrive and measures what\n"
    "each of them sees: time to the first token, time per output token. With\n"
    "several ways of batching the same requests are served once by each.\n"
    "\n"
    "A request is a line of JSON with \"prompt\" (text) or \"tokens\" (ids), "
    "and\nany of id, arrival_s, max_tokens, temperature, top_k, top_p, seed, "
    "chat,\nsystem, ignore_end. Bad lines are reported and the rest is "
    "served; the exit\ncode is then 2. Without --requests_file a workload "
    "with the lengths of a\npublic trace is made up.\n"
    "\n"
    "Ctrl-C ends with what is there and the statistics.\n"
    "\n"
    "Examples:\n"
    "  echo '{\"prompt\": \"Once\", \"max_tokens\": 20}' | pagedkv serve \\\n"
    "      --requests_file=- --text\n"
    "  pagedkv serve --batching=none,static,dynamic --requests=64\n"
    "  pagedkv serve --requests=32 --batch=32 --shared_prefix=1024 \\\n"
    "      --max_prompt_tokens=32 --prefix_sharing=on,off\n"
    "  pagedkv serve --trace=AzureLLMInferenceTrace_conv_2023.csv "
    "--requests=64 \\\n"
    "      --max_output_tokens=1024 --batching=static,dynamic";

class ServeCommand : public Command {
 public:
  std::string name() const override { return "serve"; }
  std::string summary() const override {
    return "Serve timed requests to a language model; latency, throughput";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    AddInputFlags(app);
    model_.AddTo(app);
    AddNumber(app, "--max_tokens", &defaults_.max_tokens, 1, 1u << 20,
              "Tokens to generate at most, where a request does not say")
        ->group("Generation");
    AddSamplingFlags(app, &defaults_.sampling);
    AddChoice(app, "--batching", &batching_, ParseBatchings,
              "none|static|dynamic,...", "dynamic",
              "One after the other, batch after batch, or joining and leaving "
              "at every step")
        ->group("Serving");
    AddBatchFlags(app, "Serving", &options_);
    AddChoice(app, "--prefix_sharing", &sharing_, ParseSharing, "on|off,...",
              "on",
              "off: compute equal beginnings for each request; on,off: serve "
              "by both and compare")
        ->group("Serving");
    kv_.AddTo(app);
    app.add_flag(
           "--text", show_text_,
           "Show every request and how its answer begins; --json has all of it")
        ->group("Output");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    PAGED_KV_ASSIGN_OR_RETURN(LoadedModel model, model_.Load());
    defaults_.sampling.seed = common_.seed;
    PAGED_KV_ASSIGN_OR_RETURN(const ServeRequests requests, Requests(model));
    for (const BadLine& bad : requests.bad_lines) {
      streams.err << "pagedkv serve: line " << bad.line << ": " << bad.reason
                  << std::endl;
    }
    if (requests.requests.empty()) {
      return absl::InvalidArgumentError("no request to serve");
    }
    std::vector<ServeResult> results;
    PAGED_KV_RETURN_IF_ERROR(ServeAll(streams, model, requests, &results));
    if (common_.json) {
      streams.out << ServeJson(model, requests, results, common_.seed)
                         .dump(2, ' ', false,
                               nlohmann::json::error_handler_t::replace)
                  << "\n";
    } else {
      if (show_text_) {
        streams.out << ServeRequestsText(model, requests, results.back())
                    << "\n";
      }
      streams.out << model.name << ": " << ServeText(results, requests);
    }
    return requests.bad_lines.empty() ? kExitOk : kExitBadInput;
  }

 private:
  static absl::StatusOr<std::vector<Batching>> ParseBatchings(
      absl::string_view names) {
    std::vector<Batching> all;
    for (const absl::string_view name : absl::StrSplit(names, ',')) {
      PAGED_KV_ASSIGN_OR_RETURN(const Batching batching, ParseBatching(name));
      all.push_back(batching);
    }
    return all;
  }

  static absl::StatusOr<std::vector<bool>> ParseSharing(
      absl::string_view names) {
    std::vector<bool> all;
    for (const absl::string_view name : absl::StrSplit(names, ',')) {
      if (name != "on" && name != "off") {
        return absl::InvalidArgumentError(
            absl::StrCat("unknown prefix sharing ",
                         QuoteForError(std::string(name)), "; use on or off"));
      }
      all.push_back(name == "on");
    }
    return all;
  }

  void AddInputFlags(CLI::App& app) {
    const std::string group = "Input";
    AddText(app, "--requests_file", &path_, "FILE",
            "Requests, one line of JSON each; - is standard input")
        ->group(group);
    AddNumber(app, "--requests", &workload_.trace.requests, 1, 100'000,
              "Requests of the built-in workload")
        ->group(group);
    AddChoice(app, "--workload", &workload_.trace.profile, ParseWorkload,
              "mooncake_conv|azure_conv|azure_code",
              WorkloadName(workload_.trace.profile),
              "Public trace that its lengths are fitted to")
        ->group(group);
    AddText(app, "--trace", &workload_.trace_path, "FILE",
            "Take its lengths from the first requests of this trace instead")
        ->group(group);
    AddNumber(app, "--max_prompt_tokens", &workload_.max_prompt_tokens, 1,
              1u << 20, "Longer prompts of it are cut to this")
        ->group(group);
    AddNumber(app, "--max_output_tokens", &workload_.max_output_tokens, 1,
              1u << 20, "Longer outputs of it are cut to this")
        ->group(group);
    AddNumber(app, "--shared_prefix", &workload_.shared_prefix, 0, 1u << 20,
              "Tokens with which all its prompts begin")
        ->group(group);
    AddReal(app, "--rate", &workload_.trace.requests_per_second, 0, 1e6,
            "Its arrivals per second; 0: all at the start")
        ->group(group);
  }

  absl::StatusOr<ServeRequests> Requests(const LoadedModel& model) {
    if (!path_.empty() && !workload_.trace_path.empty()) {
      return absl::InvalidArgumentError(
          "--requests_file and --trace exclude each other; give one");
    }
    if (path_.empty()) {
      workload_.trace.seed = common_.seed;
      workload_.timed = workload_.trace.requests_per_second > 0;
      return MakeServeRequests(workload_, model, defaults_);
    }
    std::string lines;
    if (path_ == "-") {
      lines.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
      PAGED_KV_ASSIGN_OR_RETURN(lines, ReadFile(path_));
    }
    return ParseServeRequests(lines, model, defaults_);
  }

  absl::Status ServeAll(ToolStreams& streams, LoadedModel& model,
                        const ServeRequests& requests,
                        std::vector<ServeResult>* results) {
    const InterruptGuard interrupt;
    Progress progress(common_.ProgressStream(streams));
    options_.cache = kv_.options;
    for (const Batching batching : batching_) {
      for (const bool sharing : sharing_) {
        options_.batching = batching;
        options_.cache.prefix_caching = sharing;
        progress.Start(absl::StrCat(BatchingName(batching), " batching"));
        PAGED_KV_ASSIGN_OR_RETURN(ServeResult result,
                                  Serve(
                                      model, requests.requests, options_,
                                      [&] { return interrupt.interrupted(); },
                                      [&](uint64_t done) {
                                        progress.Update(
                                            done, requests.requests.size());
                                      }));
        results->push_back(std::move(result));
        if (results->back().interrupted) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  CommonFlags common_;
  ModelFlags model_;
  KvFlags kv_;
  ServeRequest defaults_;
  ServeWorkload workload_{{WorkloadProfile::kAzureConversation, 1, 32, 0}};
  ServeOptions options_;
  std::vector<Batching> batching_ = {Batching::kDynamic};
  std::vector<bool> sharing_ = {true};
  std::string path_;
  bool show_text_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeServeCommand() {
  return std::make_unique<ServeCommand>();
}

}  // namespace paged_kv::tool
