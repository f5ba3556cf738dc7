// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "fpga_dma/kernels/kernel_abi.h"
#include "fpga_dma/kernels/stand_in/stage_threads.h"
#include "fpga_dma/kernels/stand_in/stream_faults.h"
#include "tests/fpga_dma/kernels/run_kv_store.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kUnwritten = 0xA5A5A5A5;  // what card memory starts as
constexpr int kSchedules = 200;

// In both builds; the parameter says whether stages are threads.
class KvStoreTest : public testing::TestWithParam<bool> {
 protected:
  KvStoreTest() { status_.Set(0, KernelStatus{}); }
  ~KvStoreTest() override { EXPECT_EQ(LeftoverStreams(), 0u); }

  // A stream of `full` beats numbered from `first`; an empty one carries TLAST
  // if `ends_empty`, otherwise the last full one does.
  static std::vector<StreamedBeat> Stream(uint32_t full, uint32_t first,
                                          bool ends_empty) {
    std::vector<StreamedBeat> beats(full + (ends_empty ? 1 : 0));
    for (uint32_t i = 0; i < beats.size(); ++i) {
      beats[i].full = i < full;
      beats[i].last = i + 1 == beats.size();
      for (uint32_t word = 0; word < 16; ++word) {
        beats[i].words[word] = i < full ? (first + i) * 16 + word : 0xEEEEEEEEu;
      }
    }
    return beats;
  }

  // A launch with a slab of exactly `slab_beats`; the address sanitizer sees
  // what is written behind it.
  KernelStatus Store(const std::vector<StreamedBeat>& in, uint32_t slab_beats) {
    slab_ = std::make_unique<CardMemory>(size_t{slab_beats} * kBeatBytes);
    const auto run = GetParam() ? RunKvStoreThreaded : RunKvStore;
    run(in, slab_.get(), &status_, slab_beats);
    return status_.Get<KernelStatus>(0);
  }

  // The first `beats` of the slab are those of a stream, the others untouched.
  void ExpectStored(uint32_t beats, uint32_t first) {
    for (uint32_t word = 0; word < slab_->size() / 4; ++word) {
      ASSERT_EQ(slab_->Get<uint32_t>(word),
                word < beats * 16 ? first * 16 + word : kUnwritten)
          << "word " << word;
    }
  }

  std::unique_ptr<CardMemory> slab_;
  CardMemory status_{kBeatBytes};
};

TEST_P(KvStoreTest, StoresStreamsOfAllLengthsInOrder) {
  for (const uint32_t beats :
       {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u}) {
    const KernelStatus status = Store(Stream(beats, beats, false), beats + 5);
    EXPECT_EQ(status.code, KernelError::kOk);
    EXPECT_EQ(status.items_done, beats);
    ExpectStored(beats, beats);
  }
}

TEST_P(KvStoreTest, AnEmptyBeatEndsTheStreamOfAFailedGather) {
  for (const uint32_t beats : {0u, 1u, 64u, 70u}) {
    const KernelStatus status = Store(Stream(beats, 1, true), 128);
    EXPECT_EQ(status.code, KernelError::kOk);
    EXPECT_EQ(status.items_done, beats);
    ExpectStored(beats, 1);
  }
}

TEST_P(KvStoreTest, WhatDoesNotFitIsDroppedAndCounted) {
  KernelStatus status = Store(Stream(100, 7, false), 65);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.items_done, 65u);
  EXPECT_EQ(status.detail, 100u);
  ExpectStored(65, 7);
  EXPECT_FALSE(ToStatus("kv_store", status).ok());

  // The error stays: the next stream is read, nothing is stored.
  status = Store(Stream(10, 0, false), 65);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.detail, 100u);
  EXPECT_EQ(status.launches, 2u);
  ExpectStored(0, 0);

  // Once it is cleared, the one after that is stored, from its first beat on.
  status_.Set(0, KernelStatus{});
  status = Store(Stream(3, 50, false), 65);
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.launches, 1u);
  ExpectStored(3, 50);
}

TEST_P(KvStoreTest, ASlabOfNoBeats) {
  const KernelStatus status = Store(Stream(2, 0, false), 0);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.items_done, 0u);
  EXPECT_EQ(status.detail, 2u);
}

TEST_P(KvStoreTest, NoScheduleOfTheStagesBlocks) {
  const uint64_t seed = TestSeed(7);
  std::mt19937_64 random(seed);
  const int schedules = GetParam() ? kSchedules : 1;
  for (int schedule = 0; schedule < schedules; ++schedule) {
    SCOPED_TRACE(schedule);
    SetStageSeed(seed + static_cast<uint64_t>(schedule));
    const auto beats = static_cast<uint32_t>(1 + random() % 400);
    const auto room = static_cast<uint32_t>(beats - 1 + random() % 3);
    status_.Set(0, KernelStatus{});
    const KernelStatus status =
        Store(Stream(beats, 9, random() % 2 == 0), room);
    EXPECT_EQ(status.code,
              room < beats ? KernelError::kOutRange : KernelError::kOk);
    ASSERT_NO_FATAL_FAILURE(ExpectStored(std::min(beats, room), 9));
  }
  RecordProperty("schedules", GetParam() ? schedules : 0);
}

INSTANTIATE_TEST_SUITE_P(Builds, KvStoreTest, testing::Bool(),
                         [](const auto& build) {
                           return build.param ? "Threaded" : "Sequential";
                         });

}  // namespace
}  // namespace paged_kv::fpga_dma
