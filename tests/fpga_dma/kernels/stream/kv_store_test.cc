// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <gtest/gtest.h>
#include <hls_stream.h>

#include <cstring>
#include <vector>

#include "fpga_dma/kernels/kernel_abi.h"

using StreamBeat = ap_axiu<512, 0, 0, 0>;

extern "C" void kv_store(hls::stream<StreamBeat>& in, ap_uint<512>* slab,
                         ap_uint<512>* status, uint32_t slab_beats);

namespace paged_kv::fpga_dma {
namespace {

using Beat = ap_uint<512>;
constexpr uint32_t kGuard = 3;  // beats behind the slab

uint32_t WordOf(const Beat& beat, int i) {
  return beat.range(32 * i + 31, 32 * i).to_uint();
}

class KvStoreTest : public testing::Test {
 protected:
  // Streams `full` beats numbered from `first`; an empty one carries TLAST if
  // `ends_empty`, otherwise the last full one does.
  void Send(uint32_t full, uint32_t first, bool ends_empty) {
    for (uint32_t i = 0; i < full + (ends_empty ? 1 : 0); ++i) {
      StreamBeat beat;
      const bool empty = i == full;
      for (int word = 0; word < 16; ++word) {
        beat.data.range(32 * word + 31, 32 * word) =
            empty ? 0xEEEEEEEEu
                  : (first + i) * 16 + static_cast<uint32_t>(word);
      }
      beat.keep.range(31, 0) = empty ? 0u : ~0u;
      beat.keep.range(63, 32) = empty ? 0u : ~0u;
      beat.last = i + 1 == full + (ends_empty ? 1 : 0);
      in_.write(beat);
    }
  }

  KernelStatus Store(uint32_t slab_beats) {
    slab_.assign(slab_beats + kGuard, Beat(0));
    for (Beat& beat : slab_) beat.range(31, 0) = 0xABABABABu;
    kv_store(in_, slab_.data(), &status_, slab_beats);
    for (uint32_t i = slab_beats; i < slab_.size(); ++i) {
      EXPECT_EQ(WordOf(slab_[i], 0), 0xABABABABu) << "behind the slab";
    }
    KernelStatus status;
    static_assert(sizeof(status) == sizeof(status_));
    std::memcpy(&status, &status_, sizeof(status));
    return status;
  }

  void ExpectStored(uint32_t beats, uint32_t first) {
    for (uint32_t i = 0; i < beats; ++i) {
      for (int word = 0; word < 16; ++word) {
        ASSERT_EQ(WordOf(slab_[i], word),
                  (first + i) * 16 + static_cast<uint32_t>(word));
      }
    }
    for (uint32_t i = beats; i < slab_.size(); ++i) {
      ASSERT_EQ(WordOf(slab_[i], 0), 0xABABABABu);
    }
  }

  hls::stream<StreamBeat> in_{"in", 1 << 16};
  std::vector<Beat> slab_;
  Beat status_ = Beat(0);
};

TEST_F(KvStoreTest, StoresStreamsOfAllLengthsInOrder) {
  for (const uint32_t beats :
       {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u}) {
    Send(beats, beats, false);
    const KernelStatus status = Store(beats + 5);
    EXPECT_EQ(status.code, KernelError::kOk);
    EXPECT_EQ(status.items_done, beats);
    ExpectStored(beats, beats);
  }
}

TEST_F(KvStoreTest, AnEmptyBeatEndsTheStreamOfAFailedGather) {
  for (const uint32_t beats : {0u, 1u, 64u, 70u}) {
    Send(beats, 1, true);
    const KernelStatus status = Store(128);
    EXPECT_EQ(status.code, KernelError::kOk);
    EXPECT_EQ(status.items_done, beats);
    ExpectStored(beats, 1);
  }
}

TEST_F(KvStoreTest, WhatDoesNotFitIsDroppedAndCounted) {
  Send(100, 7, false);
  KernelStatus status = Store(65);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.items_done, 65u);
  EXPECT_EQ(status.detail, 100u);
  ExpectStored(65, 7);

  // The error stays: the next stream is read, nothing is stored.
  Send(10, 0, false);
  status = Store(65);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.detail, 100u);
  EXPECT_EQ(status.launches, 2u);
  ExpectStored(0, 0);

  // Once it is cleared, the one after that is stored, from its first beat on.
  status_ = Beat(0);
  Send(3, 50, false);
  status = Store(65);
  EXPECT_EQ(status.code, KernelError::kOk);
  EXPECT_EQ(status.launches, 1u);
  ExpectStored(3, 50);
}

TEST_F(KvStoreTest, ASlabOfNoBeats) {
  Send(2, 0, false);
  const KernelStatus status = Store(0);
  EXPECT_EQ(status.code, KernelError::kOutRange);
  EXPECT_EQ(status.items_done, 0u);
}

}  // namespace
}  // namespace paged_kv::fpga_dma
