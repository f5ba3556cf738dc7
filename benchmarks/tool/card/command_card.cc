// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_report.h"
#include "benchmarks/tool/card/open_card.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Measures what decides how fast a card decodes: what a DMA transfer costs "
    "and how fast it is in either direction, what a kernel launch costs, and "
    "how fast each compute unit of paged_decode reads pages from its bank.\n"
    "\n"
    "Without --device the card is a model of a board (--board): driven through "
    "XRT where the emulated card was built, else in this process. Its times "
    "are those of its board file, on a clock of its own.\n"
    "\n"
    "Examples:\n"
    "  pagedkv card\n"
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
            "Write the measured constants to this file as JSON");
    AddNumber(app, "--repeats", &options_.repeats, 1, 1000,
              "Of each measurement; the median counts");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    if (info_) {
      streams.out << DescribeCards();
      return kExitOk;
    }
    options_.seed = common_.seed;
    PAGED_KV_ASSIGN_OR_RETURN(const OpenedCard card, OpenCard(choice_));
    PAGED_KV_ASSIGN_OR_RETURN(const CardCalibration costs,
                              Calibrate(*card.device, options_));
    const std::string json =
        absl::StrCat(CardJson(card, options_, costs).dump(2), "\n");
    if (!calibration_path_.empty()) {
      PAGED_KV_RETURN_IF_ERROR(WriteFile(calibration_path_, json));
    }
    streams.out << (common_.json ? json : CardText(card, costs));
    return kExitOk;
  }

 private:
  CardChoice choice_;
  CalibrationOptions options_;
  CommonFlags common_;
  std::string calibration_path_;
  bool info_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCardCommand() {
  return std::make_unique<CardCommand>();
}

}  // namespace paged_kv::tool
