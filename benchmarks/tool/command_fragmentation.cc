// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/fragmentation.h"
#include "benchmarks/tool/plot.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Serves the same requests in the same memory with every policy, the paged\n"
    "ones over block sizes from 1 to 256, and shows what the memory held and\n"
    "how many requests ran at once. All requests wait from the start, so that\n"
    "memory alone decides.\n"
    "\n"
    "Examples:\n"
    "  pagedkv fragmentation --plot=fragmentation.svg\n"
    "  pagedkv fragmentation --trace=azure_conv.csv --max_requests=2000 \\\n"
    "      --memory_gib=8 --csv=out.csv";

class FragmentationCommand : public Command {
 public:
  FragmentationCommand() { trace_.workload.requests = 400; }

  std::string name() const override { return "fragmentation"; }
  std::string summary() const override {
    return "Compare allocators: waste by cause, requests at once";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    trace_.AddTo(app);
    AddReal(app, "--memory_gib", &options_.memory_gib, 0.001, 4096,
            "Memory for the K/V of Qwen2.5-7B (56 KiB per token)")
        ->group("Memory");
    AddNumber(app, "--max_running", &options_.serving.max_running, 1, 1024,
              "Requests at once at most")
        ->group("Serving");
    AddNumber(app, "--step_tokens", &options_.serving.step_tokens, 1, 1u << 20,
              "Tokens computed per step at most")
        ->group("Serving");
    AddText(app, "--csv", &csv_path_, "FILE", "Write one row per policy")
        ->group("Output");
    AddText(app, "--plot", &plot_path_, "FILE.svg|FILE.png",
            "Draw the comparison (needs gnuplot)")
        ->group("Output");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(plot_path_));
    }
    PAGED_KV_ASSIGN_OR_RETURN(const Trace trace, trace_.Load(common_.seed));
    Progress progress(common_.ProgressStream(streams));
    PAGED_KV_ASSIGN_OR_RETURN(const std::vector<FragmentationRow> rows,
                              RunFragmentation(trace, options_, progress));
    if (!csv_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WriteFile(csv_path_, FragmentationCsv(rows)));
    }
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(
          WritePlot(FragmentationPlot(trace, options_, rows), plot_path_));
    }
    if (common_.json) {
      streams.out
          << FragmentationJson(trace, options_, rows, common_.seed).dump(2)
          << "\n";
    } else {
      streams.out << FragmentationText(trace, options_, rows);
    }
    return kExitOk;
  }

 private:
  CommonFlags common_;
  TraceFlags trace_;
  FragmentationOptions options_;
  std::string csv_path_;
  std::string plot_path_;
};

}  // namespace

std::unique_ptr<Command> MakeFragmentationCommand() {
  return std::make_unique<FragmentationCommand>();
}

}  // namespace paged_kv::tool
