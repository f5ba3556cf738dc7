// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/replay_report.h"
#include "benchmarks/tool/replay_runner.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Gives the KV memory of every request of a trace to one policy and counts\n"
    "what is found in the cache, what is wasted and why.\n"
    "\n"
    "serial finishes each request before the next one starts: pure cache\n"
    "behaviour, the same on every machine. trace uses the arrival times, the\n"
    "batch scheduler and a model of how long a step takes (Qwen2.5-7B on one\n"
    "H100), and shows the result at half and twice the model's constants.\n"
    "\n"
    "Examples:\n"
    "  pagedkv replay\n"
    "  pagedkv replay --trace=mooncake_trace.jsonl --block_tokens=512 \\\n"
    "      --pool_blocks=10000\n"
    "  pagedkv replay --trace=azure_conv.csv --policy=contiguous --json\n"
    "  pagedkv replay --trace=azure_conv.csv --concurrency=trace \\\n"
    "      --pool_fraction=0.1 --plot=conv.svg";

class ReplayCommand : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "Replay a trace: hits, waste, utilisation";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    trace_.AddTo(app);
    AddPoolFlags(app);
    AddServingFlags(app);
    const std::string group = "Output";
    AddText(app, "--csv", &csv_path_, "FILE", "Write one row per request")
        ->group(group);
    AddText(app, "--plot", &plot_path_, "FILE.svg|FILE.png",
            "Draw what happened along the trace (needs gnuplot)")
        ->group(group);
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    if (options_.pool_blocks > 0 && options_.pool_fraction > 0) {
      return absl::InvalidArgumentError(
          "--pool_blocks and --pool_fraction exclude each other; give one");
    }
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(plot_path_));
    }
    PAGED_KV_ASSIGN_OR_RETURN(const Trace trace, trace_.Load(common_.seed));
    Progress progress(common_.ProgressStream(streams));
    PAGED_KV_ASSIGN_OR_RETURN(const ReplaySummary summary,
                              RunReplay(trace, options_, progress));
    if (!csv_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WriteFile(csv_path_, ReplayCsv(trace, summary)));
    }
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(
          WritePlot(ReplayPlot(trace, summary), plot_path_));
    }
    if (common_.json) {
      streams.out << ReplayJson(trace, summary, common_.seed).dump(2) << "\n";
    } else {
      streams.out << ReplayText(trace, summary);
    }
    return kExitOk;
  }

 private:
  void AddPoolFlags(CLI::App& app) {
    const std::string group = "Memory";
    AddChoice(app, "--policy", &options_.policy, ParsePolicy,
              "paged|paged_noshare|contiguous|buddy|cells|large_pages|"
              "large_pages_64k|oracle",
              PolicyName(options_.policy), "Who hands out the memory")
        ->group(group);
    AddNumber(app, "--block_tokens", &options_.block_tokens, 1, kMaxBlockTokens,
              "Tokens per block")
        ->group(group);
    AddNumber(app, "--pool_blocks", &options_.pool_blocks, 0, 1u << 31,
              "Blocks of the pool; 0: so many that nothing is ever evicted")
        ->group(group);
    AddReal(app, "--pool_fraction", &options_.pool_fraction, 0, 1,
            "Size the pool as this share of the peak demand, which is "
            "measured first")
        ->group(group);
    AddChoice(app, "--eviction", &options_.eviction, ParseEviction, "lru|slru",
              EvictionName(options_.eviction),
              "Which cached blocks give way first")
        ->group(group);
  }

  void AddServingFlags(CLI::App& app) {
    const std::string group = "Serving";
    AddChoice(app, "--concurrency", &options_.concurrency, ParseConcurrency,
              "serial|trace", ConcurrencyName(options_.concurrency),
              "One request at a time, or as they arrived")
        ->group(group);
    AddNumber(app, "--decode_step_tokens", &options_.decode_step_tokens, 1,
              1u << 24,
              "serial: output tokens per step; more is faster and samples "
              "the averages over time less often")
        ->group(group);
    AddNumber(app, "--max_running", &options_.serving.max_running, 1, 4096,
              "trace: requests at once at most")
        ->group(group);
    AddNumber(app, "--step_tokens", &options_.serving.step_tokens, 1, 1u << 20,
              "trace: tokens computed per step at most")
        ->group(group);
    app.add_flag_callback(
           "--no_sensitivity", [this] { options_.sensitivity = false; },
           "trace: leave out the replays with other model constants")
        ->group(group);
  }

  CommonFlags common_;
  TraceFlags trace_;
  ReplayOptions options_;
  std::string csv_path_;
  std::string plot_path_;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace paged_kv::tool
