// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/calibration.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "benchmarks/tool/card/card_report.h"
#include "benchmarks/tool/card/open_card.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::Board;
using fpga_dma::SimulatedDevice;
using fpga_dma::SimulatedDeviceOptions;

// The constants of a board, each by up to 30 % more or less.
Board Perturb(Board board, std::mt19937_64& random) {
  const auto vary = [&random](double value) {
    return value * std::uniform_real_distribution<double>(0.7, 1.3)(random);
  };
  board.dma.setup = absl::Seconds(vary(absl::ToDoubleSeconds(board.dma.setup)));
  board.dma.bytes_per_second = vary(board.dma.bytes_per_second);
  board.launch = absl::Seconds(vary(absl::ToDoubleSeconds(board.launch)));
  for (fpga_dma::BoardBank& bank : board.banks) {
    bank.bytes_per_second = vary(bank.bytes_per_second);
  }
  return board;
}

void ExpectWithin3Percent(double measured, double expected,
                          const std::string& what) {
  EXPECT_NEAR(measured / expected, 1.0, 0.03)
      << what << ": measured " << measured << ", expected " << expected;
}

TEST(CardCalibrationTest, RecoversTheConstantsOfAnyBoard) {
  std::mt19937_64 random(TestSeed(20));
  for (const std::string& name : fpga_dma::BuiltinBoardNames()) {
    SCOPED_TRACE(name);
    const Board board = Perturb(fpga_dma::BuiltinBoard(name).value(), random);
    SimulatedDeviceOptions options;
    options.board = board;
    options.kernels = fpga_dma::Kernels();
    const std::unique_ptr<SimulatedDevice> device =
        SimulatedDevice::Create(options).value();
    const absl::StatusOr<CardCalibration> costs =
        Calibrate(*device, CalibrationOptions{.repeats = 1});
    ASSERT_TRUE(costs.ok()) << costs.status();

    const fpga_dma::BoardBank& first = board.banks[0];
    const double link = std::min(board.dma.bytes_per_second,
                                 first.bytes_per_second * first.burst.At(4096));
    for (const AffineCost& cost : {costs->upload, costs->download}) {
      ExpectWithin3Percent(cost.bytes_per_second, link, "link");
      ExpectWithin3Percent(absl::ToDoubleSeconds(cost.setup),
                           absl::ToDoubleSeconds(board.dma.setup), "setup");
    }
    ExpectWithin3Percent(absl::ToDoubleSeconds(costs->launch),
                         absl::ToDoubleSeconds(board.launch), "launch");
    ASSERT_FALSE(costs->banks.empty());
    for (const BankRate& rate : costs->banks) {
      const fpga_dma::BoardBank& bank =
          board.banks[board.FindBank(rate.bank).value().value()];
      const double nominal =
          std::min(bank.bytes_per_second, board.port_bytes * board.clock_hz);
      ExpectWithin3Percent(rate.bytes_per_second, nominal * bank.burst.At(4096),
                           rate.unit);
    }
  }
}

TEST(CardCalibrationTest, ACardWithoutTheKernelIsNamedAsSuch) {
  SimulatedDeviceOptions options;
  options.board = fpga_dma::BuiltinBoard("u250").value();
  options.board.compute_units.clear();
  const std::unique_ptr<SimulatedDevice> device =
      SimulatedDevice::Create(options).value();
  const absl::Status status = Calibrate(*device, CalibrationOptions{}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("paged_decode"), std::string::npos) << status;
}

TEST(CardCalibrationTest, WhatFailsOnTheCardIsReported) {
  SimulatedDeviceOptions options;
  options.board = fpga_dma::BuiltinBoard("u250").value();
  options.kernels = fpga_dma::Kernels();
  const auto faults = fpga_dma::ParseFaultPlan("kernel:fail@1");
  ASSERT_TRUE(faults.ok()) << faults.status();
  options.faults = *faults;
  const std::unique_ptr<SimulatedDevice> device =
      SimulatedDevice::Create(options).value();
  EXPECT_EQ(Calibrate(*device, CalibrationOptions{}).status().code(),
            absl::StatusCode::kInternal);
}

TEST(OpenCardTest, EveryBoardOpensAndIsDescribed) {
  for (const std::string& name : fpga_dma::BuiltinBoardNames()) {
    const absl::StatusOr<OpenedCard> card = OpenCard({name, "", ""});
    ASSERT_TRUE(card.ok()) << card.status();
    const CalibrationOptions options{.repeats = 1};
    const absl::StatusOr<CardCalibration> costs =
        Calibrate(*card->device, options);
    ASSERT_TRUE(costs.ok()) << costs.status();
    EXPECT_NE(CardText(*card, *costs).find("launch    50.00 us"),
              std::string::npos)
        << CardText(*card, *costs);
    const nlohmann::ordered_json json = CardJson(*card, options, *costs);
    EXPECT_NEAR(json["launch_us"].get<double>(), 50.0, 0.01);
    EXPECT_EQ(json["banks"].size(), card->device->info().banks.size());
  }
}

TEST(OpenCardTest, WhatCannotBeOpenedSaysWhatToDo) {
  const absl::Status unknown = OpenCard({"u999", "", ""}).status();
  EXPECT_NE(unknown.message().find("u280"), std::string::npos) << unknown;
  const absl::Status missing = OpenCard({"no/such.json", "", ""}).status();
  EXPECT_NE(missing.message().find("no/such.json"), std::string::npos)
      << missing;
  const absl::Status homeless = OpenCard({"u280", "", "f.xclbin"}).status();
  EXPECT_NE(homeless.message().find("--device"), std::string::npos) << homeless;
}

}  // namespace
}  // namespace paged_kv::tool
