// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/roof_kernels.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

using attention::Isa;
using attention::IsaName;
using attention::SupportedIsas;

std::vector<uint8_t> Bytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

uint64_t Checksum(const uint8_t* data, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += sizeof(sum)) {
    uint64_t word;
    std::memcpy(&word, data + i, sizeof(word));
    sum ^= word;
  }
  return sum;
}

TEST(RoofKernelsTest, RunsAreReadWholeAndNothingElse) {
  const std::vector<uint8_t> memory = Bytes(64 * kLineBytes + 8);
  const uint8_t* base = memory.data() + 8;  // not aligned
  const std::vector<LineRun> runs = {
      {20 * kLineBytes, 3}, {0, 1}, {40 * kLineBytes, 24}, {7 * kLineBytes, 5}};
  uint64_t want = 0;
  for (size_t i = 1; i < runs.size(); ++i) {
    want ^= Checksum(base + runs[i].offset, runs[i].lines * kLineBytes);
  }
  for (const Isa isa : SupportedIsas()) {
    for (const size_t ahead : {0, 1, 2, 100}) {
      EXPECT_EQ(RoofKernelsFor(isa).read_runs(base, runs, 1, 4, ahead), want)
          << IsaName(isa) << ", " << ahead << " ahead";
    }
  }
}

TEST(RoofKernelsTest, StreamsReadEveryWholeTurn) {
  const std::vector<uint8_t> memory = Bytes(3 * 4096 + 500);
  for (const Isa isa : SupportedIsas()) {
    for (const size_t streams : {1, 4}) {
      for (const size_t ahead : {0, 2048}) {
        EXPECT_EQ(RoofKernelsFor(isa).read_streams(memory.data(), memory.size(),
                                                   streams, ahead),
                  Checksum(memory.data(), 3 * 4096))
            << IsaName(isa) << ", x" << streams;
      }
    }
  }
}

TEST(RoofKernelsTest, PeaksDoTheArithmeticThatTheyCount) {
  for (const Isa isa : SupportedIsas()) {
    const std::vector<PeakKernel> peaks = RoofKernelsFor(isa).peaks;
    ASSERT_GE(peaks.size(), 1u);
    EXPECT_STREQ(peaks[0].name, "f32_fma");
    for (const PeakKernel& peak : peaks) {
      SCOPED_TRACE(std::string(IsaName(isa)) + " " + peak.name);
      EXPECT_GT(peak.flops, 0u);
      if (peak.name == std::string("f32_fma")) {
        // Twelve chains x -> x / 2 + 1 from 0, 1, ... 11: one step, and many.
        EXPECT_FLOAT_EQ(peak.run(1), 66.0f / 2 + 12);
        EXPECT_FLOAT_EQ(peak.run(100), 24.0f);
      } else if (peak.name == std::string("bf16_dot")) {
        // Each step adds 2 * -0.5 * 0.125 to each of the first sums.
        EXPECT_FLOAT_EQ(peak.run(8), 66.0f - 12);
        EXPECT_EQ(peak.flops, 2 * peaks[0].flops);
      } else {
        // Each step adds 32 * 0.5 * 0.5.
        EXPECT_FLOAT_EQ(peak.run(8), 64.0f);
      }
    }
  }
}

}  // namespace
}  // namespace paged_kv::tool
