// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/few_rows_tasks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace paged_kv::llm {
namespace {

// Bytes of a block's weights; nobody reads them here.
constexpr size_t kBlockBytes = 4096;

// All blocks have kOutputBlock outputs, but for the last one.
std::vector<OutputBlock> MakeBlocks(size_t count, uint32_t last_outputs,
                                    const std::byte* weights) {
  std::vector<OutputBlock> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back({static_cast<uint32_t>(i) * kOutputBlock,
                      i + 1 < count ? kOutputBlock : last_outputs,
                      static_cast<uint32_t>(i + 1), weights + i * kBlockBytes});
  }
  return blocks;
}

// Outputs in the most tasks that one thread takes, when they take turns.
uint32_t LongestTurn(const FewRowsTasks& tasks, size_t workers) {
  std::vector<uint32_t> widths(workers);
  for (size_t i = 0; i < tasks.size(); ++i) {
    widths[i % workers] += tasks[i].width;
  }
  return *std::max_element(widths.begin(), widths.end());
}

TEST(FewRowsTasksTest, EachOutputIsOfOneTaskWithItsWeights) {
  for (size_t count = 1; count <= 40; ++count) {
    const std::vector<std::byte> weights(count * kBlockBytes);
    for (const uint32_t last_outputs : {1u, 2u, 31u, 32u, 33u, 63u, 64u}) {
      const std::vector<OutputBlock> blocks =
          MakeBlocks(count, last_outputs, weights.data());
      for (size_t workers = 1; workers <= 50; ++workers) {
        const FewRowsTasks tasks(blocks, workers);
        uint32_t next = 0;  // output
        for (size_t i = 0; i < tasks.size(); ++i) {
          const FewRowsTask task = tasks[i];
          ASSERT_EQ(task.block.first, next)
              << "task " << i << " of " << count << " blocks, " << last_outputs
              << " outputs in the last one, " << workers << " workers";
          ASSERT_LE(task.block.outputs, task.width);
          next += task.block.outputs;
          if (task.block.outputs == 0) continue;
          const uint32_t block = task.block.first / kOutputBlock;
          const uint32_t column = task.block.first % kOutputBlock;
          ASSERT_TRUE(task.width == kOutputBlock || task.width == kHalfBlock);
          ASSERT_EQ(column % task.width, 0);
          ASSERT_EQ(task.block.weights,
                    blocks[block].weights + column * sizeof(float));
          ASSERT_EQ(task.block.chain, blocks[block].chain);
        }
        ASSERT_EQ(next, blocks.back().first + last_outputs);
      }
    }
  }
}

TEST(FewRowsTasksTest, HalvesShortenTheLongestTurnOrAreNotThere) {
  for (size_t count = 1; count <= 40; ++count) {
    const std::vector<std::byte> weights(count * kBlockBytes);
    const std::vector<OutputBlock> blocks =
        MakeBlocks(count, kOutputBlock, weights.data());
    for (size_t workers = 1; workers <= 50; ++workers) {
      const FewRowsTasks tasks(blocks, workers);
      const size_t left = count % workers;
      const uint32_t of_left =
          left == 0 ? 0 : (2 * left <= workers ? kHalfBlock : kOutputBlock);
      EXPECT_EQ(LongestTurn(tasks, workers),
                count / workers * kOutputBlock + of_left)
          << count << " blocks, " << workers << " workers";
      const bool halves = of_left == kHalfBlock;
      EXPECT_EQ(tasks.size(), halves ? count + left : count);
    }
  }
}

}  // namespace
}  // namespace paged_kv::llm
