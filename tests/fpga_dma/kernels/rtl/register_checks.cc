// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fpga_dma/kernels/rtl/register_checks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kWords = 64;  // of 256 bytes
constexpr uint32_t kArgumentWord = kArguments / 4;
constexpr uint32_t kStatusWord = kStatus / 4;

uint32_t Merge(uint32_t old, uint32_t value, uint32_t strobes) {
  uint32_t mask = 0;
  for (uint32_t b = 0; b < 4; ++b) {
    if (strobes >> b & 1) mask |= 0xFFu << 8 * b;
  }
  return (old & ~mask) | (value & mask);
}

}  // namespace

void CheckRegisters(KernelBench* bench, uint32_t arguments, uint64_t seed) {
  std::mt19937_64 random(seed);
  bench->Reset();
  std::vector<uint32_t> shadow(kWords, 0);
  shadow[0] = kApIdle;
  for (int i = 0; i < 4000; ++i) {
    const auto offset = static_cast<uint32_t>(random() % (4 * kWords));
    const uint32_t word = offset / 4;
    bench->SetResponseDelay(static_cast<uint32_t>(random() % 4));
    if (random() % 2 == 0) {
      auto value = static_cast<uint32_t>(random());
      const auto strobes = static_cast<uint32_t>(random() % 16);
      if (word == 0) value &= ~kApStart;
      bench->WriteRegister(offset, value, strobes);
      if (word == 1 && strobes % 2 == 1) shadow[word] = value & 1;
      if (word == 2 && strobes % 2 == 1) shadow[word] = value & 3;
      if (word == 3 && strobes % 2 == 1) shadow[word] ^= value & 3;
      if (word >= kArgumentWord && word < kArgumentWord + arguments) {
        shadow[word] = Merge(shadow[word], value, strobes);
      }
    }
    const auto other = static_cast<uint32_t>(random() % (4 * kWords));
    ASSERT_EQ(bench->ReadRegister(other), shadow[other / 4])
        << "register " << other;
    const bool interrupt = shadow[1] != 0 && (shadow[2] & shadow[3]) != 0;
    ASSERT_EQ(bench->interrupt(), interrupt);
  }
  bench->SetResponseDelay(0);
  bench->Reset();
  for (uint32_t word = 1; word < kStatusWord; ++word) {
    ASSERT_EQ(bench->ReadRegister(4 * word), 0u) << "after reset: " << word;
  }
}

void CheckInterrupts(KernelBench* bench) {
  bench->Reset();
  bench->WriteRegister(kInterruptEnable, 3);
  EXPECT_TRUE(bench->Launch());
  EXPECT_FALSE(bench->interrupt()) << "not enabled";
  EXPECT_EQ(bench->ReadRegister(kInterruptStatus), 3u);
  bench->WriteRegister(kGlobalInterrupt, 1);
  EXPECT_TRUE(bench->interrupt());
  bench->WriteRegister(kInterruptStatus, 1);  // toggles "done" alone
  EXPECT_EQ(bench->ReadRegister(kInterruptStatus), 2u);
  bench->WriteRegister(kInterruptStatus, 2);
  EXPECT_FALSE(bench->interrupt());

  bench->WriteRegister(kInterruptEnable, 1);  // done alone
  EXPECT_TRUE(bench->Launch());
  EXPECT_EQ(bench->ReadRegister(kInterruptStatus), 1u);
  EXPECT_TRUE(bench->interrupt());
  EXPECT_EQ(bench->ReadStatus().launches, 2u);
  bench->Reset();
  EXPECT_FALSE(bench->interrupt());
}

}  // namespace paged_kv::fpga_dma
