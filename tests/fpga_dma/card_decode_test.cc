// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/decode/card_decode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fpga_dma/decode_problem.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

TEST(CardDecodeTest, EqualsTheHostWhereverTheBlocksAre) {
  const uint64_t seed = TestSeed(1);
  uint64_t n = 0;
  for (uint32_t resident : {100u, 50u, 0u, 50u, 0u}) {
    for (const DecodeSpec& base : {
             DecodeSpec{4, 7, 128, 16, 4, 1, 0, {70, 5, 0, 16, 33}, 1, {}},
             DecodeSpec{4, 8, 64, 32, 2, 2, 0, {1, 130}, 1, {}},
             DecodeSpec{3, 1, 8, 16, 2, 3, 0, {95, 96, 97}, 1, {}},
             DecodeSpec{1, 4, 32, 16, 1, 1, 0, {200}, 1, {}},
         }) {
      DecodeSpec spec = base;
      spec.resident_percent = resident;
      spec.streamed = n >= 12;
      spec.seed = seed + n++;
      SCOPED_TRACE(absl::StrCat(resident, " % resident, head_dim ",
                                spec.head_dim,
                                spec.streamed ? ", streamed" : ""));
      DecodeProblem problem(spec);
      ASSERT_TRUE(problem.uploaded().ok()) << problem.uploaded();
      const auto decode = problem.Create();
      ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
      attention::SerialFor serial;
      for (uint32_t layer = 0; layer < kLayers; ++layer) {
        std::vector<float> out(problem.q().size(), NAN);
        const absl::Status status = decode->Attend(
            layer, problem.q(), {absl::MakeSpan(out), {}}, serial);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_LE(problem.MaxError(out, layer), 1e-3);
      }
      problem.rig().ExpectNoMisuse();
    }
  }
}

// Case E6: the tables of a step are those of its beginning, whatever the caller
// does to its own meanwhile.
TEST(CardDecodeTest, CaseE6AStepKeepsItsPageTable) {
  DecodeSpec spec;
  spec.tokens = {70, 40};
  spec.resident_percent = 60;
  DecodeProblem problem(spec);
  const auto decode = problem.Create();
  DecodeBlocks mine = problem.blocks();
  ASSERT_TRUE(decode->BeginStep(mine).ok());
  for (uint32_t& page : mine.device_pages) page = 0;
  for (uint32_t& page : mine.host_pages) page = 0;
  std::vector<float> out(problem.q().size());
  attention::SerialFor serial;
  ASSERT_TRUE(
      decode->Attend(1, problem.q(), {absl::MakeSpan(out), {}}, serial).ok());
  EXPECT_LE(problem.MaxError(out, 1), 1e-3);
}

// Case E8: sequences of unequal lengths, and what pads a table, harm nobody:
// pages are bounded by length, and what is out of range is refused.
TEST(CardDecodeTest, CaseE8PaddingIsRefusedAndLengthsAreBounds) {
  DecodeSpec spec;
  spec.tokens = {5, 70};
  DecodeProblem problem(spec);
  const auto decode = problem.Create();
  using absl::StatusCode;
  DecodeBlocks padded = problem.blocks();
  padded.device_pages[2] = kNoDevicePage;  // -1
  padded.host_pages[2] = 0xFFFFFFFFu;
  EXPECT_EQ(decode->BeginStep(padded).code(), StatusCode::kOutOfRange);
  padded = problem.blocks();
  padded.device_pages[0] = problem.rig().pool().num_pages();
  EXPECT_EQ(decode->BeginStep(padded).code(), StatusCode::kOutOfRange);
  padded = problem.blocks();
  padded.last_page_tokens[0] = 17;
  EXPECT_EQ(decode->BeginStep(padded).code(), StatusCode::kInvalidArgument);
  padded = problem.blocks();
  padded.indptr[1] = 9;
  EXPECT_EQ(decode->BeginStep(padded).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  std::vector<float> out(problem.q().size());
  attention::SerialFor serial;
  EXPECT_EQ(
      decode->Attend(kLayers, problem.q(), {absl::MakeSpan(out), {}}, serial)
          .code(),
      StatusCode::kInvalidArgument);
  ASSERT_TRUE(
      decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, serial).ok());
  EXPECT_LE(problem.MaxError(out, 0), 1e-3);
}

TEST(CardDecodeTest, TheHostWorksWhileTheCardRuns) {
  DecodeSpec spec;
  spec.tokens = {400, 400};
  spec.resident_percent = 50;
  spec.stripes = 4;
  DecodeProblem problem(spec);
  problem.options().host_bytes_per_second = 10e9;
  const auto decode = problem.Create();
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  std::vector<float> out(problem.q().size());
  attention::SerialFor serial;
  ASSERT_TRUE(
      decode->Attend(2, problem.q(), {absl::MakeSpan(out), {}}, serial).ok());
  uint32_t uploads = 0, kernels = 0, downloads = 0;
  absl::Time host_start, host_finish, kernel_start;
  for (const DecodeEvent& event : decode->TakeEvents()) {
    EXPECT_EQ(event.layer, 2u);
    EXPECT_LE(event.start, event.finish);
    uploads += event.what == "upload";
    downloads += event.what == "download";
    if (event.what == "kernel") {
      ++kernels;
      kernel_start = event.start;
    } else if (event.what == "host") {
      host_start = event.start;
      host_finish = event.finish;
    }
  }
  EXPECT_EQ(uploads, 1u);
  EXPECT_EQ(kernels, 4u);
  EXPECT_EQ(downloads, 2u);
  EXPECT_LT(host_start, host_finish);
  EXPECT_LE(kernel_start, host_finish);
  EXPECT_TRUE(decode->TakeEvents().empty());
}

// A step of 5 tokens longer than whole blocks, of which the card has half: what
// is sent for a layer, and in how many launches.
TEST(CardDecodeTest, StreamedBlocksAreSentLayerByLayer) {
  DecodeSpec spec;
  spec.tokens = {405, 405};
  spec.stripes = 4;
  spec.resident_percent = 0;
  spec.streamed = true;
  DecodeProblem problem(spec);
  const auto decode = problem.Create();
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  const DecodeTraffic traffic = decode->traffic();
  const uint64_t block_bytes = 2 * 4 * 16 * 128 * 2;  // of a layer
  EXPECT_EQ(traffic.streamed, 2 * 25 * block_bytes);
  EXPECT_EQ(traffic.launches, 4u);
  EXPECT_EQ(traffic.kv_read,
            std::vector<uint64_t>(4, 2 * 25 * block_bytes / 4));
  EXPECT_EQ(traffic.kv_on_host, 2 * 5 * block_bytes / 16);
  attention::SerialFor serial;
  std::vector<float> out(problem.q().size());
  const auto attend = [&](uint32_t layer) {
    return decode->Attend(layer, problem.q(), {absl::MakeSpan(out), {}},
                          serial);
  };
  // Only in order; the last one again is no harm.
  EXPECT_EQ(attend(1).code(), absl::StatusCode::kFailedPrecondition);
  for (uint32_t layer : {0u, 0u, 1u, 2u}) {
    ASSERT_TRUE(attend(layer).ok());
    EXPECT_LE(problem.MaxError(out, layer), 1e-3);
  }
  EXPECT_EQ(attend(1).code(), absl::StatusCode::kFailedPrecondition);
  // A layer is on its way before the one before it is done.
  absl::Time last_of_0, first_of_1 = absl::InfiniteFuture();
  for (const DecodeEvent& event : decode->TakeEvents()) {
    if (event.what == "kernel" && event.layer == 0) last_of_0 = event.finish;
    if (event.what == "stream" && event.layer == 1) {
      first_of_1 = std::min(first_of_1, event.start);
    }
  }
  EXPECT_LT(first_of_1, last_of_0);
  // The next step sends anew: pages may have changed.
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  ASSERT_TRUE(attend(0).ok());
  EXPECT_LE(problem.MaxError(out, 0), 1e-3);
  problem.rig().ExpectNoMisuse();
}

// The uploads and the downloads of a step go wrong, one in each run. Kernels
// start on pages that nobody has read back yet, so some have to start again.
TEST(CardDecodeTest, EveryTransferOfAStepMayGoWrong) {
  const uint64_t seed = TestSeed(1);
  attention::SerialFor serial;
  uint32_t runs = 0, repeated = 0;
  // Of the first run, in which nothing goes wrong.
  std::vector<std::vector<float>> right(kLayers);
  for (CardOperation operation :
       {CardOperation::kUpload, CardOperation::kDownload}) {
    for (FaultKind kind : {FaultKind::kFlipBit, FaultKind::kFail}) {
      for (uint64_t nth = 0, faults = 1; faults == 1; ++nth) {
        DecodeSpec spec;
        spec.kv_heads = 2;
        spec.group = 2;
        spec.head_dim = 64;
        spec.splits = 2;
        spec.tokens = {600, 90};
        spec.resident_percent = 40;
        spec.streamed = true;
        spec.seed = seed;
        FaultRule rule;
        rule.operation = operation;
        rule.kind = kind;
        rule.nth = nth;
        if (nth > 0) spec.faults.rules = {rule};
        DecodeProblem problem(spec);
        ASSERT_TRUE(problem.uploaded().ok());
        const auto decode = problem.Create();
        ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
        for (uint32_t layer = 0; layer < kLayers; ++layer) {
          std::vector<float> out(problem.q().size());
          const absl::Status status = decode->Attend(
              layer, problem.q(), {absl::MakeSpan(out), {}}, serial);
          ASSERT_TRUE(status.ok()) << status;
          if (right[layer].empty()) {
            ASSERT_LE(problem.MaxError(out, layer), 1e-3);
            right[layer] = out;
          }
          ASSERT_EQ(out, right[layer])
              << CardOperationName(operation) << " " << nth;
        }
        uint32_t kernels = 0;
        for (const DecodeEvent& event : decode->TakeEvents()) {
          kernels += event.what == "kernel";
        }
        EXPECT_GE(kernels, kLayers * decode->traffic().launches);
        repeated += kernels > kLayers * decode->traffic().launches;
        ++runs;
        if (nth > 0) faults = problem.rig().device().faults().faults();
        problem.rig().ExpectNoMisuse();
      }
    }
  }
  EXPECT_GT(runs, 60u);
  EXPECT_GT(repeated, 20u);
}

// Pages of a layer that has failed may be on their way still when the next one
// is asked for.
TEST(CardDecodeTest, AFailedLayerSpoilsNoOther) {
  const uint64_t seed = TestSeed(1);
  attention::SerialFor serial;
  uint32_t failed = 0, after = 0;
  for (uint64_t nth = 1, faults = 1; faults == 1; ++nth) {
    DecodeSpec spec;
    spec.head_dim = 64;
    spec.tokens = {2000};
    spec.resident_percent = 0;
    spec.streamed = true;
    spec.seed = seed;
    spec.faults = ParseFaultPlan(absl::StrCat("download:fail@", nth)).value();
    DecodeProblem problem(spec);
    problem.options().max_attempts = 1;
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    bool one_failed = false;
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> out(problem.q().size());
      const absl::Status status =
          decode->Attend(layer, problem.q(), {absl::MakeSpan(out), {}}, serial);
      if (!status.ok()) {
        one_failed = true;
        continue;
      }
      after += one_failed;
      ASSERT_LE(problem.MaxError(out, layer), 1e-3) << "download " << nth;
    }
    failed += one_failed;
    faults = problem.rig().device().faults().faults();
    problem.rig().ExpectNoMisuse();
  }
  EXPECT_GT(failed, 10u);
  EXPECT_GT(after, 0u);
}

// Each download of a step is late in turn, reading back pages among them.
TEST(CardDecodeTest, ALayerEndsWhenItsPagesAreKnownToBeRight) {
  attention::SerialFor serial;
  uint32_t runs = 0;
  for (uint64_t nth = 1, faults = 1; faults == 1; ++nth) {
    DecodeSpec spec;
    spec.head_dim = 64;
    spec.tokens = {2000};
    spec.resident_percent = 0;
    spec.streamed = true;
    spec.faults =
        ParseFaultPlan(absl::StrCat("download:delay=2ms@", nth)).value();
    DecodeProblem problem(spec);
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    std::vector<float> out(problem.q().size());
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(
          decode->Attend(layer, problem.q(), {absl::MakeSpan(out), {}}, serial)
              .ok());
    }
    EXPECT_EQ(problem.rig().tracker().num_pending(), 0u) << "download " << nth;
    faults = problem.rig().device().faults().faults();
    ++runs;
  }
  EXPECT_GT(runs, 10u);
}

// Units start on pages that have arrived; one whose wrong bit shows only when
// the page is read back, late, makes the layer run again.
TEST(CardDecodeTest, OutputsOfPagesThatWereWrongDoNotCount) {
  attention::SerialFor serial;
  std::vector<float> right;
  uint32_t runs = 0;
  for (uint64_t nth = 0, faults = 1; faults == 1; ++nth) {
    DecodeSpec spec;
    spec.head_dim = 64;
    spec.tokens = {2000};
    spec.resident_percent = 0;
    spec.streamed = true;
    std::string plan = "download:delay=2ms%1";
    if (nth > 0) absl::StrAppend(&plan, " upload:flip@", nth);
    spec.faults = ParseFaultPlan(plan).value();
    DecodeProblem problem(spec);
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    std::vector<float> out(problem.q().size());
    ASSERT_TRUE(
        decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, serial).ok());
    if (nth == 0) {
      ASSERT_LE(problem.MaxError(out, 0), 1e-3);
      right = out;
    }
    ASSERT_EQ(out, right) << "upload " << nth;
    const FaultPlan& given = problem.rig().device().faults();
    if (nth > 0) faults = given.operations(CardOperation::kUpload) >= nth;
    ++runs;
  }
  EXPECT_GT(runs, 5u);
}

// What is read of blocks on the card comes back while the units are at work on
// streamed ones.
TEST(CardDecodeTest, OutputsOfPagesOnTheCardAreReadFirst) {
  DecodeSpec spec;
  spec.tokens = {800, 800};
  spec.resident_percent = 50;
  spec.stripes = 4;
  spec.streamed = true;
  DecodeProblem problem(spec);
  const auto decode = problem.Create();
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  ASSERT_EQ(decode->traffic().launches, 8u);
  std::vector<float> out(problem.q().size());
  attention::SerialFor serial;
  ASSERT_TRUE(
      decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, serial).ok());
  absl::Time last_kernel, first_download = absl::InfiniteFuture();
  uint32_t downloads = 0;
  for (const DecodeEvent& event : decode->TakeEvents()) {
    if (event.what == "kernel") {
      last_kernel = std::max(last_kernel, event.finish);
    }
    if (event.what != "download") continue;
    ++downloads;
    first_download = std::min(first_download, event.start);
  }
  EXPECT_EQ(downloads, 3u);
  EXPECT_LT(first_download, last_kernel);
}

// Every (sequence, split) with streamed pages has outputs of its own, and all
// splits have as many pages, whatever the lengths.
TEST(CardDecodeTest, StreamedPagesAreDealtOutInFewRuns) {
  for (const std::vector<uint32_t>& blocks :
       {std::vector<uint32_t>{10, 10, 10, 10}, std::vector<uint32_t>{40},
        std::vector<uint32_t>{7, 30, 0, 3},
        std::vector<uint32_t>{1, 1, 1, 1, 36}}) {
    DecodeSpec spec;
    spec.kv_heads = 2;
    spec.group = 3;
    spec.splits = 4;
    spec.resident_percent = 0;
    spec.streamed = true;
    for (uint32_t n : blocks) spec.tokens.push_back(16 * n + 1);
    DecodeProblem problem(spec);
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    const DecodeTraffic traffic = decode->traffic();
    const uint64_t block_bytes = 2 * 2 * 16 * 128 * 2;  // of a layer
    EXPECT_EQ(traffic.kv_read, std::vector<uint64_t>(4, 10 * block_bytes));
    // A status word per launch; per head of a run rows of f32, and their lse.
    const uint64_t of_run = 2 * (3 * 128 * sizeof(float) + kBeatBytes);
    EXPECT_LE(traffic.outputs,
              4 * kBeatBytes + (blocks.size() + 4 - 1) * of_run);
    attention::SerialFor serial;
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> out(problem.q().size());
      ASSERT_TRUE(
          decode->Attend(layer, problem.q(), {absl::MakeSpan(out), {}}, serial)
              .ok());
      EXPECT_LE(problem.MaxError(out, layer), 1e-3);
    }
  }
}

// A step that is given up in the middle, and one that ends with its object.
TEST(CardDecodeTest, AStreamMayBeGivenUp) {
  DecodeSpec spec;
  spec.tokens = {800, 3};
  spec.resident_percent = 20;
  spec.streamed = true;
  DecodeProblem problem(spec);
  attention::SerialFor serial;
  std::vector<float> out(problem.q().size());
  {
    const auto decode = problem.Create();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
      ASSERT_TRUE(
          decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, serial)
              .ok());
      EXPECT_LE(problem.MaxError(out, 0), 1e-3);
    }
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  }
  problem.rig().ExpectNoMisuse();
}

// Resets the card while the host attends to its part, once.
class ResettingFor : public attention::ParallelFor {
 public:
  explicit ResettingFor(OperationTracker* tracker) : tracker_(tracker) {}
  size_t num_workers() const override { return 1; }
  void Run(size_t num_tasks, Task task) override {
    if (!done_) {
      EXPECT_TRUE(tracker_->Reset("a test").ok());
      done_ = true;
    }
    for (size_t i = 0; i < num_tasks; ++i) task(i, 0);
  }

 private:
  OperationTracker* const tracker_;
  bool done_ = false;
};

// Trying again would read pages that the card does not have any more.
TEST(CardDecodeTest, AResetInTheMiddleOfALayerIsReported) {
  DecodeSpec spec;
  spec.head_dim = 32;
  spec.tokens = {90, 70};
  spec.resident_percent = 60;
  spec.seed = TestSeed(1);
  DecodeProblem problem(spec);
  ASSERT_TRUE(problem.uploaded().ok());
  const auto decode = problem.Create();
  ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
  ASSERT_GT(decode->traffic().kv_read[0], 0u);
  ASSERT_GT(decode->traffic().kv_on_host, 0u);
  std::vector<float> out(problem.q().size(), 7.0f);
  ResettingFor resetting(&problem.rig().tracker());
  const absl::Status status =
      decode->Attend(0, problem.q(), {absl::MakeSpan(out), {}}, resetting);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(problem.rig().tracker().resets(), 1u);
  for (float value : out) ASSERT_EQ(value, 7.0f);
}

// Layer 0 fails while its pages are still being read back; the next layer waits
// for that and finds a reset, in any transfer: it must not count what the card
// had before. The same for a layer that is repeated, and for a new step that
// resets the card itself.
TEST(CardDecodeTest, AResetBetweenLayersAndStepsIsReported) {
  const uint64_t seed = TestSeed(1);
  attention::SerialFor serial;
  uint32_t resets = 0;
  for (const uint32_t resident : {0, 30}) {
    for (const bool kernels_fail : {false, true}) {
      for (CardOperation operation :
           {CardOperation::kUpload, CardOperation::kDownload}) {
        for (FaultKind kind : {FaultKind::kHang, FaultKind::kLoseDevice}) {
          for (uint64_t nth = 1; nth < 40; nth += 3) {
            DecodeSpec spec;
            spec.kv_heads = 2;
            spec.group = 2;
            spec.head_dim = 64;
            spec.splits = 2;
            spec.tokens = {1200};
            spec.resident_percent = resident;
            spec.streamed = true;
            spec.seed = seed;
            if (kernels_fail) {
              for (const uint64_t k : {8, 12}) {
                FaultRule rule;
                rule.operation = CardOperation::kKernel;
                rule.nth = k;
                spec.faults.rules.push_back(rule);
              }
            }
            FaultRule rule;
            rule.operation = operation;
            rule.kind = kind;
            rule.nth = nth;
            spec.faults.rules.push_back(rule);
            DecodeProblem problem(spec);
            problem.options().max_attempts = 2;
            const OperationTracker& tracker = problem.rig().tracker();
            if (!problem.uploaded().ok() || tracker.generation() != 0) continue;
            const auto decode = problem.Create();
            for (int step = 0; step < 2; ++step) {
              const uint64_t generation = tracker.generation();
              if (!decode->BeginStep(problem.blocks()).ok()) break;
              for (uint32_t layer : {0, 0, 1, 1}) {
                std::vector<float> out(problem.q().size());
                const absl::Status status = decode->Attend(
                    layer, problem.q(), {absl::MakeSpan(out), {}}, serial);
                if (tracker.generation() != generation) {
                  ++resets;
                  ASSERT_FALSE(status.ok());
                }
                if (status.ok()) {
                  ASSERT_LE(problem.MaxError(out, layer), 1e-3);
                }
              }
              if (tracker.generation() != 0) break;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(resets, 100u);
}

// Whatever the link does, a result is right or there is none.
TEST(CardDecodeTest, FaultsAreFoundOrReported) {
  const uint64_t seed = TestSeed(1);
  uint32_t good = 0, failed = 0;
  uint64_t faults = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    DecodeSpec spec;
    spec.kv_heads = 2;
    spec.group = 2;
    spec.head_dim = 32;
    spec.stripes = 2;
    spec.tokens = {40, 21};
    spec.resident_percent = 70;
    spec.streamed = i % 2 == 1;
    spec.seed = seed + i;
    spec.faults.seed = seed + i;
    for (CardOperation operation :
         {CardOperation::kUpload, CardOperation::kDownload,
          CardOperation::kKernel}) {
      for (FaultKind kind : {FaultKind::kFail, FaultKind::kFlipBit,
                             FaultKind::kLoseCompletion, FaultKind::kHang}) {
        // The card gives no checksum of what a kernel computed.
        if (operation == CardOperation::kKernel &&
            kind == FaultKind::kFlipBit) {
          continue;
        }
        FaultRule rule;
        rule.operation = operation;
        rule.kind = kind;
        rule.probability = kind == FaultKind::kHang ? 0.002 : 0.03;
        spec.faults.rules.push_back(rule);
      }
    }
    DecodeProblem problem(spec);
    if (problem.rig().tracker().resets() > 0) continue;  // pages were lost
    if (!problem.uploaded().ok()) continue;
    const auto decode = problem.Create();
    ASSERT_TRUE(decode->BeginStep(problem.blocks()).ok());
    attention::SerialFor serial;
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> out(problem.q().size());
      const absl::Status status =
          decode->Attend(layer, problem.q(), {absl::MakeSpan(out), {}}, serial);
      if (!status.ok()) {
        ++failed;
        break;
      }
      ++good;
      ASSERT_LE(problem.MaxError(out, layer), 1e-3) << "seed " << seed + i;
    }
    faults += problem.rig().device().faults().faults();
  }
  EXPECT_GT(faults, 60u);
  EXPECT_GT(good, 100u);
  EXPECT_LT(failed, 20u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
