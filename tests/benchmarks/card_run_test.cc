// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_run.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/tool/card/card_run_report.h"
#include "benchmarks/tool/card/card_sweep.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/support/sanitized.h"

namespace paged_kv::tool {
namespace {

OpenedCard Simulated(const std::string& board) {
  fpga_dma::SimulatedDeviceOptions options;
  options.board = fpga_dma::BuiltinBoard(board).value();
  options.kernels = fpga_dma::Kernels();
  return {fpga_dma::SimulatedDevice::Create(options).value(), "simulated",
          options.board};
}

CardCase SmallCase() {
  CardCase card_case;
  card_case.shape.layers = 3;
  card_case.batch = 3;
  card_case.context = 203;
  card_case.steps = 6;  // a block becomes whole on the way
  return card_case;
}

CardCalibration Costs(const OpenedCard& card) {
  return Calibrate(*card.device, CalibrationOptions{.repeats = 1}).value();
}

CardRun MustRun(const OpenedCard& card, const CardCalibration& costs,
                const CardCase& card_case) {
  Progress quiet(nullptr);
  absl::StatusOr<CardRun> run = RunCard(card, costs, card_case, quiet);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : CardRun();
}

TEST(CardRunTest, EveryModeEqualsTheHost) {
  for (const std::string board : {"u250", "u280"}) {
    if (kSanitized && board == "u250") continue;
    const OpenedCard card = Simulated(board);
    const CardCalibration costs = Costs(card);
    for (CardMode mode : kFixedCardModes) {
      for (double resident : {1.0, 0.4, 0.0}) {
        if (mode == CardMode::kResident && resident < 1) continue;
        SCOPED_TRACE(std::string(CardModeName(mode)));
        CardCase card_case = SmallCase();
        card_case.mode = mode;
        card_case.resident = resident;
        const CardRun run = MustRun(card, costs, card_case);
        EXPECT_EQ(run.steps.size(), 6u);
        EXPECT_LE(run.max_error, 1e-4);
        EXPECT_GT(run.step_time, absl::ZeroDuration());
        EXPECT_EQ(run.mode, mode);
        EXPECT_EQ(run.hand_off.bytes > 0, resident > 0);
      }
    }
  }
}

// What the project promises of a whole model, at a few of its layers.
TEST(CardRunTest, ResidentDecodingIsNearItsBound) {
  for (const std::string board : {"u250", "u280"}) {
    if (kSanitized && board == "u280") continue;
    CardCase card_case;
    card_case.shape.layers = 2;
    card_case.steps = 1;
    card_case.mode = CardMode::kResident;
    const OpenedCard card = Simulated(board);
    const CardRun run = MustRun(card, Costs(card), card_case);
    EXPECT_LE(run.max_error, 2e-3);
    EXPECT_LE(run.bound_ratio, 1.15) << board;
    EXPECT_GE(run.bound_ratio, 1.0) << board;
    EXPECT_LE(run.bank_imbalance, 0.05);
    EXPECT_GE(run.hand_off.Hidden(), 0.95);
    absl::Duration sum;
    for (absl::Duration part :
         {run.shares.sync, run.shares.launch, run.shares.memory,
          run.shares.arithmetic, run.shares.stream, run.shares.host}) {
      EXPECT_GE(part, absl::ZeroDuration());
      sum += part;
    }
    EXPECT_EQ(sum, run.step_time);
  }
}

TEST(CardRunTest, ASlowUploadIsNotHiddenByAShortPrefill) {
  CardCase card_case = SmallCase();
  card_case.prefill_flops = 1e18;
  card_case.mode = CardMode::kResident;
  const OpenedCard card = Simulated("u250");
  const CardRun run = MustRun(card, Costs(card), card_case);
  EXPECT_LT(run.hand_off.Hidden(), 0.5);
  EXPECT_GE(run.hand_off.Hidden(), 0.0);
}

TEST(CardRunTest, ResidentNeedsRoomForAll) {
  const OpenedCard card = Simulated("u250");
  CardCase card_case = SmallCase();
  card_case.mode = CardMode::kResident;
  card_case.resident = 0.5;
  Progress quiet(nullptr);
  const CardCalibration costs = Costs(card);
  const absl::Status status = RunCard(card, costs, card_case, quiet).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--mode=hybrid"), std::string::npos)
      << status;
}

// Where card and link take equally long, each waits for the other as soon as
// pages hold up the step's own transfers or crowd in one bank.
TEST(CardRunTest, StreamedPagesDoNotHoldUpTheStep) {
  const OpenedCard card = Simulated("u250");
  const CardCalibration costs = Costs(card);
  CardCase card_case;
  card_case.shape.layers = 8;
  card_case.batch = 4;
  card_case.steps = 1;
  card_case.mode = CardMode::kStreamed;
  card_case.context = 1632;
  card_case.resident = 0.627;
  EXPECT_LE(MustRun(card, costs, card_case).bound_ratio, 1.08);
  card_case.context = 1296;
  card_case.resident = 0.79;
  EXPECT_LE(MustRun(card, costs, card_case).bound_ratio, 1.1);
}

TEST(CardSweepTest, AutoIsNearTheBestAndStreamingNearItsFormula) {
  const OpenedCard card = Simulated("u250");
  const CardCalibration costs = Costs(card);
  CardCase card_case;
  card_case.shape.layers = 4;
  CardSweepOptions options;
  options.points = 5;
  options.to = 4;
  options.device_bytes = uint64_t{24} << 20;
  Progress quiet(nullptr);
  const auto sweep = SweepCard(card, costs, card_case, options, quiet);
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  ASSERT_EQ(sweep->points.size(), 5u);
  EXPECT_LE(sweep->WorstAutoOverBest(), 1.05);
  EXPECT_GE(sweep->WorstStreamShare(), 0.85);
  EXPECT_LE(sweep->WorstStreamShare(), 1.0);
  for (const CardSweepPoint& point : sweep->points) {
    EXPECT_LE(point.max_error, 1e-4);
    EXPECT_EQ(point.time[1].has_value(), point.resident >= 1);
  }
  EXPECT_NE(CardSweepText(*sweep).find("auto"), std::string::npos);
  EXPECT_EQ(CardSweepJson(*sweep)["points"].size(), 5u);
}

TEST(CardCommandTest, PrintsWhatItFound) {
  const Invocation run = Invoke({"card", "--board=u250", "--layers=2",
                                 "--context=64", "--steps=2", "--json"});
  ASSERT_EQ(run.code, kExitOk) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_LE(json["decode"]["max_error"], 2e-3);
  EXPECT_GT(json["decode"]["bound_ratio"], 0.99);
  EXPECT_EQ(json["decode"]["steps_ms"].size(), 2u);
  const Invocation compare = Invoke({"card", "--board=u250", "--layers=2",
                                     "--context=64", "--steps=1", "--compare"});
  ASSERT_EQ(compare.code, kExitOk) << compare.err;
  EXPECT_NE(compare.out.find("streamed"), std::string::npos) << compare.out;
}

TEST(CardCommandTest, RefusesWhatTheKernelDoesNotTake) {
  const Invocation dim = Invoke(
      {"card", "--layers=1", "--context=32", "--steps=1", "--head_dim=24"});
  EXPECT_EQ(dim.code, kExitBadInput);
  EXPECT_NE(dim.err.find("head_dim"), std::string::npos) << dim.err;
  const Invocation mode = Invoke({"card", "--mode=fast"});
  EXPECT_EQ(mode.code, kExitBadInput);
  EXPECT_NE(mode.err.find("hybrid"), std::string::npos) << mode.err;
}

TEST(CardCommandTest, RefusesTwoRunsAtOnce) {
  const std::vector<std::string> runs = {"--info",  "--calibrate=never.json",
                                         "--link",  "--churn",
                                         "--sweep", "--compare"};
  for (const std::string& one : runs) {
    for (const std::string& other : runs) {
      if (one == other) continue;
      const Invocation both = Invoke({"card", one.c_str(), other.c_str()});
      EXPECT_EQ(both.code, kExitBadInput) << one << " " << other;
      EXPECT_EQ(both.out, "");
      for (const std::string& flag : {one, other}) {
        EXPECT_NE(both.err.find(flag.substr(0, flag.find('='))),
                  std::string::npos)
            << both.err;
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists("never.json"));
}

}  // namespace
}  // namespace paged_kv::tool
