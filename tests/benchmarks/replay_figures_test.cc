// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The waste of serial replays of the public Azure traces. The expected figures
// are those of the lengths in the files alone, computed here; the replay reads
// them from the pool's slot states.

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <utility>

#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_runner.h"
#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/shared_traces.h"

namespace paged_kv::tool {
namespace {

ReplaySummary Replay(const Trace& trace, PolicyKind policy,
                     uint32_t block_tokens) {
  ReplayOptions options;
  options.policy = policy;
  options.block_tokens = block_tokens;
  options.decode_step_tokens = 1u << 20;
  Progress progress(nullptr);
  return RunReplay(trace, options, progress).value();
}

double TailWasteOfLengths(const Trace& trace, uint64_t block_tokens) {
  uint64_t used = 0, held = 0;
  for (const Request& r : trace.requests) {
    used += r.total_tokens();
    held += (r.total_tokens() + block_tokens - 1) / block_tokens * block_tokens;
  }
  return static_cast<double>(held - used) / static_cast<double>(held);
}

double ReservedWasteOfLengths(const Trace& trace) {
  uint64_t used = 0, longest = 0;
  for (const Request& r : trace.requests) {
    used += r.total_tokens();
    longest = std::max<uint64_t>(longest, r.total_tokens());
  }
  const uint64_t held = longest * trace.requests.size();
  return static_cast<double>(held - used) / static_cast<double>(held);
}

struct Figure {
  const char* file;
  uint32_t block_tokens;
  double final_tail_waste;  // to four digits
};

std::ostream& operator<<(std::ostream& os, const Figure& figure) {
  return os << figure.file << ", blocks of " << figure.block_tokens;
}

class FinalTailWasteTest : public testing::TestWithParam<Figure> {};

TEST_P(FinalTailWasteTest, IsWhatTheLengthsSay) {
  const Figure& figure = GetParam();
  PAGED_KV_NEEDS_TRACE(path, figure.file);
  const Trace trace = ReadTrace(path, {}).value();
  for (const PolicyKind policy :
       {PolicyKind::kPaged, PolicyKind::kPagedNoShare}) {
    const ReplaySummary summary = Replay(trace, policy, figure.block_tokens);
    EXPECT_EQ(summary.result.Completed(), trace.requests.size());
    EXPECT_NEAR(summary.result.FinalTailWaste(), figure.final_tail_waste,
                0.00005);
    EXPECT_DOUBLE_EQ(summary.result.FinalTailWaste(),
                     TailWasteOfLengths(trace, figure.block_tokens));
    EXPECT_EQ(summary.result.FinalReservedWaste(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Azure, FinalTailWasteTest,
                         testing::Values(Figure{kConversationTrace, 16, 0.0054},
                                         Figure{kConversationTrace, 32, 0.0112},
                                         Figure{kConversationTrace, 128,
                                                0.0438},
                                         Figure{kCodeTrace, 16, 0.0037}));

TEST(ReservedWasteTest, ContiguousReservesTheLongestRequest) {
  for (const auto& [file, expected] :
       {std::pair(kConversationTrace, 0.903), std::pair(kCodeTrace, 0.735)}) {
    PAGED_KV_NEEDS_TRACE(path, file);
    const Trace trace = ReadTrace(path, {}).value();
    const ReplaySummary summary = Replay(trace, PolicyKind::kContiguous, 16);
    EXPECT_NEAR(summary.result.FinalReservedWaste(), expected, 0.0005);
    EXPECT_DOUBLE_EQ(summary.result.FinalReservedWaste(),
                     ReservedWasteOfLengths(trace));
    EXPECT_EQ(summary.result.FinalTailWaste(), 0);
  }
}

TEST(ReservedWasteTest, TheOracleWastesNothingInTheEnd) {
  PAGED_KV_NEEDS_TRACE(path, kCodeTrace);
  const Trace trace = ReadTrace(path, {}).value();
  const ReplaySummary summary = Replay(trace, PolicyKind::kOracle, 16);
  EXPECT_EQ(summary.result.FinalReservedWaste(), 0);
  EXPECT_EQ(summary.result.FinalTailWaste(), 0);
}

}  // namespace
}  // namespace paged_kv::tool
