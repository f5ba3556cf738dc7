// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The calls on several threads, for the thread sanitizer: threads of one call,
// and calls of several callers on one pool.

#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "attention/append_kv.h"
#include "attention/copy_blocks.h"
#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"

namespace paged_kv::attention::testing {
namespace {

AttentionSpec StressSpec(bool decode) {
  AttentionSpec spec;
  spec.shape.kv_heads = 2;
  spec.shape.head_dim = 32;
  spec.group = 3;
  spec.decode = decode;
  spec.sequences = decode ? std::vector<SequenceLengths>{{1, 2000}, {1, 9}}
                          : std::vector<SequenceLengths>{{60, 90}, {1, 1500}};
  return spec;
}

TEST(AttentionStressTest, CallersShareOnePool) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (const bool decode : {true, false, true}) {
    callers.emplace_back([&pool, decode] {
      const AttentionProblem problem(StressSpec(decode));
      SerialFor serial;
      const auto want = RunReference(problem, serial);
      for (int round = 0; round < 5; ++round) {
        const auto got = RunKernel(problem, Isa::kAuto, pool);
        EXPECT_EQ(Compare(*want, *got, ToleranceFor(Isa::kAuto, DType::kF32)),
                  "");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Neighbouring tokens of one tile that go to different tasks, then copies.
TEST(AttentionStressTest, AppendAndCopy) {
  ThreadPool pool(3);
  BlockShape shape;
  shape.kv_heads = 3;
  shape.head_dim = 32;
  PageMemory memory(shape, 80, PageOrder::kOwn, Poison::kNan);
  std::vector<int64_t> slots(600);
  std::iota(slots.begin(), slots.end(), 7);
  const std::vector<float> rows(slots.size() * 3 * 32, 1.5f);
  KvRows input;
  input.data = rows.data();
  ASSERT_TRUE(AppendKv(memory.pages(), 0, input, input, slots, pool).ok());
  std::vector<PageCopy> copies;
  for (uint32_t i = 0; i < 30; ++i) copies.push_back({i + 1, 79 - i, 16});
  ASSERT_TRUE(CopyBlocks(memory.pages(), copies, pool).ok());
  for (const PageCopy& copy : copies) {
    for (uint32_t token = 0; token < 16; ++token) {
      uint16_t bits;
      std::memcpy(&bits,
                  memory.bytes().data() +
                      memory.KeyOffset(copy.target, 0, 2, token, 31),
                  sizeof(bits));
      EXPECT_EQ(bits, 0x3FC0);  // 1.5 in bf16
    }
  }
}

}  // namespace
}  // namespace paged_kv::attention::testing
