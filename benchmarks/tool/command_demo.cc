// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/card/card_demo.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/demo.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/table.h"
#include "benchmarks/tool/workload.h"
#include "paged_kv/status_macros.h"
#ifdef PAGED_KV_TOOL_RUNS_MODELS
#include "benchmarks/tool/serving/interrupt.h"
#include "benchmarks/tool/serving/model_demo.h"
#endif

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "A tour of under a minute: what prefix sharing finds at different cache\n"
    "sizes, what allocators waste in the same memory, and a small batch that\n"
    "is really served through prefill and decode over shared pages on the\n"
    "CPU. Then a card decodes, an emulated one that is driven through XRT "
    "where\n"
    "that is installed. Ends in a table and a plot, pagedkv_demo.svg and "
    ".png.\n"
    "Where the tool was built with oneDNN, a language model answers questions\n"
    "that share a system prompt: the one that 'make model' fetched, if it is\n"
    "there.\n"
    "\n"
    "Example:\n"
    "  pagedkv demo --out=/tmp";

class DemoCommand : public Command {
 public:
  std::string name() const override { return "demo"; }
  std::string summary() const override {
    return "A short tour of all this, with a table and a plot";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    AddText(app, "--out", &out_, "FOLDER", "Where the plots go")
        ->group("Output");
    app.add_flag_callback(
           "--no_plot", [this] { plot_ = false; },
           "Draw nothing (no gnuplot needed)")
        ->group("Output");
    app.add_flag_callback(
        "--no_card", [this] { card_ = false; }, "Leave out the card");
    app.add_flag_callback(
        "--no_model", [this] { model_ = false; },
        "Leave out the questions to a language model");
    AddNumber(app, "--requests", &options_.replay_requests, 10, 1'000'000,
              "Requests that are replayed");
    AddNumber(app, "--batch", &options_.serving.requests, 1, 256,
              "Requests that are served on the CPU");
    AddNumber(app, "--output_tokens", &options_.serving.output_tokens, 1, 4096,
              "Length of each answer");
    AddNumber(app, "--threads", &options_.serving.threads, 1, 1024,
              "Threads that compute attention");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    PAGED_KV_RETURN_IF_ERROR(CheckOutput());
    options_.seed = common_.seed;
    options_.serving.seed = common_.seed;
    WorkloadOptions workload;
    workload.seed = common_.seed;
    workload.requests = options_.replay_requests;
    DemoResult result(GenerateWorkload(workload));
    result.fragmentation.block_sizes = {16};

    Progress progress(common_.ProgressStream(streams));
    PAGED_KV_RETURN_IF_ERROR(Replay(streams, progress, result));
    PAGED_KV_RETURN_IF_ERROR(Compare(streams, progress, result));
    PAGED_KV_RETURN_IF_ERROR(Serve(streams, progress, result));
    nlohmann::ordered_json json = DemoJson(result, common_.seed);
    if (card_) PAGED_KV_RETURN_IF_ERROR(RunCard(streams, progress, &json));
#ifdef PAGED_KV_TOOL_RUNS_MODELS
    if (model_) {
      PAGED_KV_RETURN_IF_ERROR(AskModel(streams, progress, &json));
    }
#endif
    if (common_.json) {
      streams.out << json.dump(2, ' ', false,
                               nlohmann::json::error_handler_t::replace)
                  << "\n";
    } else {
      streams.out << "\nIn short:\n\n" << DemoSummaryText(result);
    }
    PAGED_KV_RETURN_IF_ERROR(Draw(streams, result));
    if (!result.SameAnswers()) {
      return absl::InternalError(
          "the batch was answered differently with and without sharing");
    }
    return kExitOk;
  }

 private:
  void Say(ToolStreams& streams, absl::string_view text) const {
    if (!common_.json) streams.out << text << std::flush;
  }

  std::string PlotPath(absl::string_view suffix) const {
    return (std::filesystem::path(out_) / absl::StrCat("pagedkv_demo", suffix))
        .string();
  }

  absl::Status CheckOutput() const {
    if (!plot_) return absl::OkStatus();
    std::error_code error;
    if (!std::filesystem::is_directory(out_, error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--out='", out_, "' is not a folder; create it or name another"));
    }
    const absl::Status status = CheckCanPlot(PlotPath(".svg"));
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), " (--no_plot)"));
  }

  absl::Status Replay(ToolStreams& streams, Progress& progress,
                      DemoResult& result) const {
    Say(streams,
        absl::StrCat("1. ", Grouped(result.trace.requests.size()),
                     " requests like those of a public chat service "
                     "(Mooncake), one after the\n   other: what share of "
                     "their prompts does the cache already have?\n\n"));
    PAGED_KV_ASSIGN_OR_RETURN(result.cache,
                              DemoCacheSizes(result.trace, options_, progress));
    progress.Clear();
    Say(streams, DemoCacheText(result));
    return absl::OkStatus();
  }

  absl::Status Compare(ToolStreams& streams, Progress& progress,
                       DemoResult& result) const {
    Trace beginning = result.trace;
    if (beginning.requests.size() > options_.compared_requests) {
      beginning.requests.resize(options_.compared_requests);
    }
    Say(streams,
        absl::StrFormat("\n2. The first %d of them all waiting, in the same "
                        "%.4g GiB of KV memory: who can\n   run how many at "
                        "once, and what is wasted?\n\n",
                        beginning.requests.size(),
                        result.fragmentation.memory_gib));
    PAGED_KV_ASSIGN_OR_RETURN(
        result.policies,
        RunFragmentation(beginning, result.fragmentation, progress));
    Say(streams, DemoPoliciesText(result));
    return absl::OkStatus();
  }

  absl::Status Serve(ToolStreams& streams, Progress& progress,
                     DemoResult& result) const {
    DemoServingOptions serving = options_.serving;
    Say(streams,
        absl::StrCat("\n3. ", serving.requests, " requests with a common ",
                     "beginning of ", serving.common_tokens,
                     " tokens, served on this CPU: K and V\n   written into "
                     "pages and read by attention (28 query heads, 4 KV "
                     "heads, bf16).\n\n"));
    progress.Start("serving, nothing shared");
    serving.share = false;
    PAGED_KV_ASSIGN_OR_RETURN(result.alone, ServeDemoBatch(serving, progress));
    progress.Start("serving, prefix shared");
    serving.share = true;
    PAGED_KV_ASSIGN_OR_RETURN(result.shared, ServeDemoBatch(serving, progress));
    progress.Clear();
    Say(streams, DemoServingText(result, serving));
    return absl::OkStatus();
  }

  // Adds its result to the report, as "card".
  absl::Status RunCard(ToolStreams& streams, Progress& progress,
                       nlohmann::ordered_json* json) const {
    PAGED_KV_ASSIGN_OR_RETURN(const CardDemo demo,
                              RunCardDemo(common_.seed, progress));
    Say(streams,
        absl::StrCat("\n4. A card (a model of an Alveo ",
                     absl::AsciiStrToUpper(demo.board), ", ", demo.driver,
                     ") decodes\n   from pages in its own memory; "
                     "times by its clock.\n\n",
                     CardDemoText(demo)));
    (*json)["card"] = CardDemoJson(demo);
    return absl::OkStatus();
  }

#ifdef PAGED_KV_TOOL_RUNS_MODELS
  // Adds its result to the report, as "model".
  absl::Status AskModel(ToolStreams& streams, Progress& progress,
                        nlohmann::ordered_json* json) const {
    progress.Start("asking a language model");
    const InterruptGuard interrupt;
    PAGED_KV_ASSIGN_OR_RETURN(
        const ModelDemo demo,
        RunModelDemo(options_.serving.threads, common_.seed,
                     [&] { return interrupt.interrupted(); }));
    progress.Clear();
    Say(streams,
        absl::StrCat("\n5. Questions that share a system prompt, answered "
                     "together by a language model:\n   ",
                     demo.model,
                     demo.real ? ""
                               : ", which says nothing: 'make model' "
                                 "fetches a real one",
                     ".\n\n", ModelDemoText(demo)));
    (*json)["model"] = ModelDemoJson(demo);
    return absl::OkStatus();
  }
#endif

  absl::Status Draw(ToolStreams& streams, const DemoResult& result) const {
    if (!plot_) return absl::OkStatus();
    const Plot plot = DemoPlot(result);
    for (const char* suffix : {".svg", ".png"}) {
      PAGED_KV_RETURN_IF_ERROR(WritePlot(plot, PlotPath(suffix)));
    }
    Say(streams, absl::StrCat("\nPlots: ", PlotPath(".svg"), ", ",
                              PlotPath(".png"), "\n"));
    return absl::OkStatus();
  }

  CommonFlags common_;
  DemoOptions options_;
  std::string out_ = ".";
  bool plot_ = true;
  bool card_ = true;
  bool model_ = true;
};

}  // namespace

std::unique_ptr<Command> MakeDemoCommand() {
  return std::make_unique<DemoCommand>();
}

}  // namespace paged_kv::tool
