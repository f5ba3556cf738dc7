// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where pages lie on a card after much coming and going, and how fast scattered
// ones move.

#include <cstdlib>
#include <memory>
#include <string>

#include "benchmarks/tool/card/card_churn.h"
#include "benchmarks/tool/card/card_link.h"
#include "benchmarks/tool/card/lifo_shadow.h"
#include "benchmarks/tool/workload.h"
#include "fpga_dma/card_model/board.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "fpga_dma/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/shared_traces.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::tool {
namespace {

std::unique_ptr<fpga_dma::SimulatedDevice> Simulated(const char* board) {
  fpga_dma::SimulatedDeviceOptions options;
  options.board = fpga_dma::BuiltinBoard(board).value();
  options.kernels = fpga_dma::Kernels();
  options.detect_misuse = false;
  return fpga_dma::SimulatedDevice::Create(options).value();
}

Trace Requests(uint64_t seed, uint32_t count) {
  WorkloadOptions workload;
  workload.profile = WorkloadProfile::kAzureConversation;
  workload.requests = count;
  workload.seed = seed;
  return GenerateWorkload(workload);
}

// ---- The stack of free pages that others are compared with ----

TEST(LifoShadowTest, TheLastPageBackIsTheNextOneOut) {
  LifoShadow shadow(8, 2);  // split 0: 0 to 3, split 1: 4 to 7
  for (uint32_t i = 0; i < 6; ++i) shadow.Hold(BlockId(i), i);
  EXPECT_EQ(shadow.PageOf(BlockId(0)), 0u);
  EXPECT_EQ(shadow.PageOf(BlockId(1)), 4u);
  EXPECT_EQ(shadow.PageOf(BlockId(4)), 2u);
  shadow.Hold(BlockId(2), 2);  // a fork
  shadow.Drop(BlockId(0));
  shadow.Drop(BlockId(2));  // the fork still holds it
  EXPECT_EQ(shadow.num_free(), 3u);
  shadow.Hold(BlockId(9), 0);
  EXPECT_EQ(shadow.PageOf(BlockId(9)), 0u);
  shadow.Drop(BlockId(2));
  shadow.Hold(BlockId(10), 6);
  EXPECT_EQ(shadow.PageOf(BlockId(10)), 1u);
  EXPECT_EQ(shadow.num_free(), 2u);
}

// ---- Churn ----

CardChurn Churn(const char* board, const Trace& trace,
                const CardChurnOptions& options) {
  const auto device = Simulated(board);
  Progress quiet(nullptr);
  const auto churn =
      RunCardChurn(device.get(), CardCase(), trace, options, quiet);
  EXPECT_TRUE(churn.ok()) << churn.status();
  return churn.ok() ? *churn : CardChurn();
}

// Splits cut a sequence into as many runs, and forks grow where others lie
// before them, so that a descriptor moves less; `gain` is over a stack of
// pages.
void ExpectGoodPlaces(const CardChurn& churn, double gain) {
  EXPECT_GE(churn.DescriptorGain(), gain);
  EXPECT_LE(churn.BankSpread(), 0.05);
  EXPECT_GT(churn.LifoBytesPerDescriptor(),
            0.99 * static_cast<double>(churn.page_bytes));
}

TEST(CardChurnTest, PagesStayTogether) {
  const uint64_t seed = TestSeed(1);
  const Trace trace = Requests(seed, 1000);
  CardChurnOptions options;
  options.seed = seed;
  options.pages = 2048;
  options.forked = 0;
  const CardChurn churn = Churn("u250", trace, options);
  ExpectGoodPlaces(churn, 4.0);
  EXPECT_EQ(churn.requests, 1000u);
  EXPECT_EQ(churn.copies, 0u);
  ExpectGoodPlaces(Churn("u280", trace, options), 2.5);
}

TEST(CardChurnTest, BanksStayEvenUnderCopyOnWrite) {
  const uint64_t seed = TestSeed(1);
  const Trace trace = Requests(seed, 1000);
  CardChurnOptions options;
  options.seed = seed;
  options.pages = 2048;
  const CardChurn u250 = Churn("u250", trace, options);
  ExpectGoodPlaces(u250, 2.0);
  const CardChurn u280 = Churn("u280", trace, options);
  ExpectGoodPlaces(u280, 2.0);
  for (const CardChurn& churn : {u250, u280}) {
    EXPECT_GT(churn.forks, 400u);
    // All but those whose prompt ends with a whole block, where nothing is
    // shared that anybody writes.
    EXPECT_GT(churn.copies, churn.forks * 8 / 10);
    EXPECT_LE(churn.copies, churn.forks);
    EXPECT_EQ(churn.kv_read.size(), size_t{churn.stripes} * churn.splits);
  }
  EXPECT_EQ(CardChurnJson(u280), CardChurnJson(Churn("u280", trace, options)));
}

TEST(CardChurnTest, ConversationTrace) {
  PAGED_KV_NEEDS_TRACE(path, kConversationTrace);
  Trace trace = ChurnTrace(path, 1).value();
  trace.requests.resize(2000);
  CardChurnOptions options;
  options.forked = 0;
  const CardChurn churn = Churn("u250", trace, options);
  EXPECT_EQ(churn.trace, kConversationTrace);
  ExpectGoodPlaces(churn, 4.0);
}

TEST(CardChurnTest, RefusesWhatCannotBe) {
  const auto device = Simulated("u280");
  const Trace trace = Requests(1, 20);
  Progress quiet(nullptr);
  CardChurnOptions options;
  options.pages = 4097;
  EXPECT_EQ(RunCardChurn(device.get(), CardCase(), trace, options, quiet)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  options.pages = 4;
  Trace long_prompt = trace;
  long_prompt.requests.resize(1);
  long_prompt.requests[0].prompt_tokens = 500;
  const absl::Status none =
      RunCardChurn(device.get(), CardCase(), long_prompt, options, quiet)
          .status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument) << none;
}

TEST(CardChurnTest, SaysThatATraceIsMadeUp) {
  ASSERT_EQ(setenv("PAGED_KV_SHARED_DIR", "/nowhere/at/all", 1), 0);
  const Trace trace = ChurnTrace("", 1).value();
  EXPECT_EQ(trace.format, TraceFormat::kGenerated);
  EXPECT_NE(trace.name.find("/nowhere/at/all/traces/"), std::string::npos);
  EXPECT_EQ(unsetenv("PAGED_KV_SHARED_DIR"), 0);
}

// ---- The link ----

// Fewer layers than `pagedkv card --link` moves: of whole pages the share is
// about the same.
TEST(CardLinkTest, ScatteredPagesGetMostOfTheLink) {
  const auto device = Simulated("u280");
  const CardCalibration costs =
      Calibrate(*device, CalibrationOptions{.repeats = 1}).value();
  CardCase card_case;
  card_case.shape.layers = 2;
  Progress quiet(nullptr);
  const auto link =
      MeasureCardLink(device.get(), costs, card_case, 1000, quiet);
  ASSERT_TRUE(link.ok()) << link.status();
  ASSERT_EQ(link->moves.size(), 8u);
  EXPECT_GE(link->WorstShare(true), 0.8);
  EXPECT_GE(link->WorstShare(false), 0.8);
  EXPECT_LE(link->slice_share, 0.06);
  EXPECT_GT(link->slice_share, 0.01);
  for (const LinkMove& move : link->moves) {
    EXPECT_LT(move.share, 1.0);
    EXPECT_GT(move.descriptors, 0u);
  }
}

}  // namespace
}  // namespace paged_kv::tool
