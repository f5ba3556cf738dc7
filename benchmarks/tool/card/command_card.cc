// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/card/card_churn.h"
#include "benchmarks/tool/card/card_link.h"
#include "benchmarks/tool/card/card_report.h"
#include "benchmarks/tool/card/card_run.h"
#include "benchmarks/tool/card/card_run_report.h"
#include "benchmarks/tool/card/card_sweep.h"
#include "benchmarks/tool/card/open_card.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/kernels/attention_flags.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/table.h"
#include "nlohmann/json.hpp"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Measures what decides how fast a card decodes (what a DMA transfer, a "
    "byte and a kernel launch cost, how fast each compute unit reads pages), "
    "then decodes: prompts are computed on the host, their pages handed over "
    "to the card meanwhile, and every step's attention is compared with the "
    "host's own over all pages.\n"
    "\n"
    "Modes: host attends to all; resident: the card does; hybrid: the card to "
    "what it has (--resident), the host to the rest, at once; streamed: the "
    "rest is sent to the card layer by layer; auto: what should take the least "
    "time.\n"
    "\n"
    "Without --device the card is a model of a board (--board): driven through "
    "XRT where the emulated card was built, else in this process. Its times "
    "are those of its board file, on a clock of its own.\n"
    "\n"
    "Examples:\n"
    "  pagedkv card\n"
    "  pagedkv card --board=u250 --resident=0.5 --mode=hybrid --plot=step.svg\n"
    "  pagedkv card --sweep --plot=modes.svg\n"
    "  pagedkv card --link\n"
    "  pagedkv card --churn\n"
    "  pagedkv card --board=u250 --calibrate=u250.json\n"
    "  pagedkv card --info\n"
    "  pagedkv card --device=0000:3b:00.1 --xclbin=pagedkv_u280.xclbin";

class CardCommand : public Command {
 public:
  std::string name() const override { return "card"; }
  std::string summary() const override {
    return "Measure what transfers, launches and reads cost on a card";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    AddText(app, "--board", &choice_.board, "u250|u280|u55c|FILE",
            "Board of a card without hardware");
    AddText(app, "--device", &choice_.device, "BDF",
            "A card: its PCIe address or index");
    AddText(app, "--xclbin", &choice_.xclbin, "FILE",
            "The design that the card is loaded with");
    app.add_flag("--info", info_,
                 "Say which cards there are and how to enable more, no more");
    AddText(app, "--calibrate", &calibration_path_, "FILE",
            "Only measure what operations cost, and write that to this file as "
            "JSON");
    AddNumber(app, "--repeats", &options_.repeats, 1, 1000,
              "Of each measurement of costs; the median counts");
    AddChoice(app, "--mode", &case_.mode, ParseCardMode,
              "host|resident|hybrid|streamed|auto", "auto",
              "Who attends to the blocks");
    AddReal(app, "--resident", &case_.resident, 0.0, 1.0,
            "Share of the blocks that the card has room for");
    AddNumber(app, "--batch", &case_.batch, 1, 1024, "Sequences");
    AddNumber(app, "--context", &case_.context, 1, 1u << 20,
              "Prompt tokens of each");
    AddNumber(app, "--steps", &case_.steps, 1, 1u << 16, "Decode steps");
    AddNumber(app, "--layers", &case_.shape.layers, 1, 1024,
              "Layers of the model");
    AddChoice(app, "--heads", &heads_, ParseHeads, "QUERY/KV", "28/4",
              "Query and KV heads");
    AddNumber(app, "--head_dim", &case_.shape.head_dim, 8, 128,
              "Of K and V: 8, 16, 32, 64 or 128");
    AddNumber(app, "--block_tokens", &case_.shape.block_tokens, 16, 1024,
              "Tokens per block, whole tiles of 16");
    AddReal(app, "--host_gbps", &host_gbps_, 0.1, 10000.0,
            "GB/s of K and V that the host attends to, on a modelled clock");
    AddReal(app, "--prefill_tflops", &prefill_tflops_, 0.001, 10000.0,
            "Tflop/s of the host's prefill, on a modelled clock");
    app.add_flag("--sweep", sweep_run_,
                 "Time per step of each mode from 0.1 to 8 times the card's "
                 "memory for pages");
    AddNumber(app, "--points", &sweep_.points, 1, 1000, "Of a sweep");
    AddNumber(app, "--device_mib", &device_mib_, 1, 1u << 20,
              "MiB of pages on the card in a sweep");
    app.add_flag("--compare", compare_,
                 "Decode in every mode, predicted against measured");
    app.add_flag("--link", link_run_,
                 "What share of the link's rate scattered pages get");
    AddNumber(app, "--link_pages", &link_pages_, 1, 60000, "That are moved");
    app.add_flag("--churn", churn_run_,
                 "How pages lie, and what each bank reads, after much coming, "
                 "going and copying on write");
    AddNumber(app, "--churn_pages", &churn_.pages, 1, 1u << 24,
              "On the card, a multiple of its splits");
    AddReal(app, "--forked", &churn_.forked, 0.0, 1.0,
            "Share of the requests that are sampled twice");
    AddText(app, "--trace", &trace_path_, "FILE",
            "Whose requests come and go; without, the Azure conversation trace "
            "in traces/ of PAGED_KV_SHARED_DIR or, if it is not there, "
            "requests like its");
    AddText(app, "--plot", &plot_path_, "FILE",
            "Draw the step's timeline, or the sweep, as SVG or PNG");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    PAGED_KV_RETURN_IF_ERROR(CheckOneTask());
    if (info_) {
      streams.out << DescribeCards();
      return kExitOk;
    }
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(CheckCanPlot(plot_path_));
    }
    CompleteCase();
    PAGED_KV_ASSIGN_OR_RETURN(const OpenedCard card, OpenCard(choice_));
    PAGED_KV_ASSIGN_OR_RETURN(const CardCalibration costs,
                              Calibrate(*card.device, options_));
    if (!calibration_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WriteFile(
          calibration_path_,
          absl::StrCat(CardJson(card, options_, costs).dump(2), "\n")));
      return Print(card, costs, "", nullptr, streams);
    }
    Progress progress(common_.ProgressStream(streams));
    if (link_run_) {
      PAGED_KV_ASSIGN_OR_RETURN(const CardLink link,
                                MeasureCardLink(card.device.get(), costs, case_,
                                                link_pages_, progress));
      return Print(card, costs, CardLinkText(link),
                   {{"link", CardLinkJson(link)}}, streams);
    }
    if (churn_run_) return Churn(card, costs, progress, streams);
    if (sweep_run_) return Sweep(card, costs, progress, streams);
    if (compare_) return Compare(card, costs, progress, streams);
    PAGED_KV_ASSIGN_OR_RETURN(const CardRun run,
                              RunCard(card, costs, case_, progress));
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WritePlot(CardTimelinePlot(run), plot_path_));
    }
    return Print(card, costs, CardRunText(run), {{"decode", CardRunJson(run)}},
                 streams);
  }

 private:
  absl::Status CheckOneTask() const {
    std::vector<std::string> given;
    const auto add = [&](const char* flag, bool is_given) {
      if (is_given) given.push_back(flag);
    };
    add("--info", info_);
    add("--calibrate", !calibration_path_.empty());
    add("--link", link_run_);
    add("--churn", churn_run_);
    add("--sweep", sweep_run_);
    add("--compare", compare_);
    if (given.size() < 2) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(given, " and "),
                     ": give one of them at a time; each is a run of its own"));
  }

  void CompleteCase() {
    options_.seed = common_.seed;
    case_.seed = common_.seed;
    case_.query_heads = heads_.query;
    case_.shape.kv_heads = heads_.kv;
    case_.host_bytes_per_second = host_gbps_ * 1e9;
    case_.prefill_flops = prefill_tflops_ * 1e12;
    sweep_.device_bytes = uint64_t{device_mib_} << 20;
    churn_.seed = common_.seed;
  }

  absl::StatusOr<int> Churn(const OpenedCard& card,
                            const CardCalibration& costs, Progress& progress,
                            ToolStreams& streams) {
    PAGED_KV_ASSIGN_OR_RETURN(const Trace trace,
                              ChurnTrace(trace_path_, common_.seed));
    PAGED_KV_ASSIGN_OR_RETURN(
        const CardChurn churn,
        RunCardChurn(card.device.get(), case_, trace, churn_, progress));
    return Print(card, costs, CardChurnText(churn),
                 {{"churn", CardChurnJson(churn)}}, streams);
  }

  absl::StatusOr<int> Sweep(const OpenedCard& card,
                            const CardCalibration& costs, Progress& progress,
                            ToolStreams& streams) {
    PAGED_KV_ASSIGN_OR_RETURN(const CardSweep sweep,
                              SweepCard(card, costs, case_, sweep_, progress));
    if (!plot_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WritePlot(CardSweepPlot(sweep), plot_path_));
    }
    return Print(card, costs, CardSweepText(sweep),
                 {{"sweep", CardSweepJson(sweep)}}, streams);
  }

  absl::StatusOr<int> Compare(const OpenedCard& card,
                              const CardCalibration& costs, Progress& progress,
                              ToolStreams& streams) {
    Table table({"mode", "predicted ms", "measured ms", "measured/predicted"});
    nlohmann::ordered_json json;
    for (CardMode mode : kFixedCardModes) {
      if (mode == CardMode::kResident && case_.resident < 1) continue;
      CardCase one = case_;
      one.mode = mode;
      PAGED_KV_ASSIGN_OR_RETURN(const CardRun run,
                                RunCard(card, costs, one, progress));
      const double predicted = absl::ToDoubleMilliseconds(run.predicted);
      const double measured = absl::ToDoubleMilliseconds(run.step_time);
      table.Add({std::string(CardModeName(mode)),
                 absl::StrFormat("%.3f", predicted),
                 absl::StrFormat("%.3f", measured),
                 absl::StrFormat("%.3f", measured / predicted)});
      json["compare"].push_back(CardRunJson(run));
    }
    return Print(card, costs, table.Text(), json, streams);
  }

  absl::StatusOr<int> Print(const OpenedCard& card,
                            const CardCalibration& costs,
                            const std::string& text,
                            const nlohmann::ordered_json& parts,
                            ToolStreams& streams) {
    if (common_.json) {
      nlohmann::ordered_json json = CardJson(card, options_, costs);
      if (parts.is_object()) json.update(parts);
      streams.out << json.dump(2) << "\n";
    } else {
      streams.out << CardText(card, costs) << (text.empty() ? "" : "\n")
                  << text;
    }
    return kExitOk;
  }

  CardChoice choice_;
  CalibrationOptions options_;
  CardCase case_;
  Heads heads_;
  double host_gbps_ = 40.0;
  double prefill_tflops_ = 2.0;
  CardSweepOptions sweep_;
  uint32_t device_mib_ = 64;
  uint32_t link_pages_ = 1000;
  CardChurnOptions churn_;
  std::string trace_path_;
  CommonFlags common_;
  std::string calibration_path_;
  std::string plot_path_;
  bool info_ = false;
  bool sweep_run_ = false;
  bool link_run_ = false;
  bool churn_run_ = false;
  bool compare_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCardCommand() {
  return std::make_unique<CardCommand>();
}

}  // namespace paged_kv::tool
