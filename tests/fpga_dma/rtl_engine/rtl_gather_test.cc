// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/rtl_engine/rtl_gather.h"

#include <gtest/gtest.h>

#include <cstring>

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kPages = 5;
constexpr uint32_t kStrideBeats = 70;

class RtlGatherTest : public testing::Test {
 protected:
  RtlGatherTest() : pool_(size_t{kPages} * kStrideBeats * kBeatBytes) {
    for (size_t i = 0; i < pool_.size(); ++i) {
      pool_[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
    }
    job_.pool = pool_;
    job_.num_pages = kPages;
    job_.page_stride_beats = kStrideBeats;
    job_.slice_beat = 3;
    job_.slice_beats = 65;
  }
  absl::Status Run(const std::vector<uint32_t>& pages) {
    job_.pages = pages;
    beats_.clear();
    return RunRtlGather(job_, PortTiming(), &beats_, &cycles_);
  }

  std::vector<std::byte> pool_;
  GatherJob job_;
  std::vector<GatheredBeat> beats_;
  uint64_t cycles_ = 0;
};

TEST_F(RtlGatherTest, StreamsSlicesInTheOrderOfTheTable) {
  const std::vector<uint32_t> pages = {4, 0, 0, 2};
  ASSERT_TRUE(Run(pages).ok());
  ASSERT_EQ(beats_.size(), pages.size() * job_.slice_beats);
  for (size_t i = 0; i < beats_.size(); ++i) {
    const size_t beat = pages[i / 65] * kStrideBeats + 3 + i % 65;
    ASSERT_EQ(std::memcmp(beats_[i].data(), pool_.data() + beat * kBeatBytes,
                          kBeatBytes),
              0)
        << "beat " << i;
  }
  // A latency for the table, one for the pages, and a cycle per beat.
  EXPECT_GT(cycles_, 2 * 72 + beats_.size());
  EXPECT_LT(cycles_, 2 * 72 + beats_.size() + 60);
}

TEST_F(RtlGatherTest, SaysWhatIsWrongWithAPage) {
  const absl::Status status = Run({4, 5, 1});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "kv_gather item 1: beyond the pool: page index 5 (code 6)");
  EXPECT_EQ(beats_.size(), 65u) << "what was in front of it";
}

TEST_F(RtlGatherTest, SaysWhatIsWrongWithTheArguments) {
  job_.slice_beats = 68;
  EXPECT_NE(Run({0}).message().find("71"), std::string::npos);
  EXPECT_TRUE(beats_.empty());
}

TEST_F(RtlGatherTest, MemoryThatIsNotThereIsABusError) {
  job_.pool = job_.pool.subspan(0, 4 * kStrideBeats * kBeatBytes);
  const absl::Status status = Run({3, 4});
  EXPECT_NE(status.message().find("(code 14)"), std::string::npos) << status;
}

}  // namespace
}  // namespace paged_kv::fpga_dma
