// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_demo.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_run_report.h"
#include "benchmarks/tool/card/open_card.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// What the project promises of outputs.
constexpr double kMaxError = 2e-3;

}  // namespace

absl::StatusOr<CardDemo> RunCardDemo(uint64_t seed, Progress& progress) {
  CardChoice choice;
  PAGED_KV_ASSIGN_OR_RETURN(const OpenedCard card, OpenCard(choice));
  CalibrationOptions calibration;
  calibration.repeats = 1;
  calibration.seed = seed;
  PAGED_KV_ASSIGN_OR_RETURN(const CardCalibration costs,
                            Calibrate(*card.device, calibration));
  CardCase card_case;
  card_case.shape.layers = 4;
  card_case.context = 1024;
  card_case.steps = 4;
  card_case.mode = CardMode::kResident;
  card_case.seed = seed;
  CardDemo demo;
  demo.board = choice.board;
  demo.driver = card.driver;
  demo.through_xrt = card.through_xrt;
  PAGED_KV_ASSIGN_OR_RETURN(demo.run,
                            RunCard(card, costs, card_case, progress));
  if (!(demo.run.max_error <= kMaxError)) {
    return absl::InternalError(absl::StrCat(
        "the card's outputs are ", demo.run.max_error, " from the host's"));
  }
  return demo;
}

std::string CardDemoText(const CardDemo& demo) {
  return absl::StrCat(
      demo.through_xrt
          ? ""
          : "Without XRT, so simulated in this process; to drive it as a card "
            "is driven,\ninstall libxrt-dev and uuid-dev and build again.\n\n",
      CardRunText(demo.run));
}

nlohmann::ordered_json CardDemoJson(const CardDemo& demo) {
  nlohmann::ordered_json json = {{"board", demo.board},
                                 {"driver", demo.driver},
                                 {"through_xrt", demo.through_xrt}};
  json.update(CardRunJson(demo.run));
  return json;
}

}  // namespace paged_kv::tool
