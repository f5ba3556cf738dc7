// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <vector>

#include "absl/status/status.h"
#include "benchmarks/tool/serving/generate.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/serving/serving_test_model.h"

namespace paged_kv::tool {
namespace {

class GenerateBeamsTest : public testing::Test {
 protected:
  GenerateBeamsTest() : model_(TinyModel()) {
    options_.cache.dtype = DType::kF32;
    options_.cache.block_tokens = 4;
    options_.max_tokens = 20;
    options_.step_tokens = 16;
    for (TokenId i = 0; i < 2; ++i) {
      Prompt prompt;
      for (TokenId j = 0; j < 10; ++j) prompt.tokens.push_back(3 * j + i);
      prompts_.push_back(prompt);
    }
  }

  absl::StatusOr<GenerateResult> Run(uint32_t beams) {
    options_.beams = beams;
    return Generate(model_, prompts_, options_, {});
  }

  LoadedModel model_;
  GenerateOptions options_;
  std::vector<Prompt> prompts_;
};

TEST_F(GenerateBeamsTest, BeamsComeBestFirstAndOneIsGreedy) {
  const auto greedy = Run(0), one = Run(1), four = Run(4);
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(four.ok()) << four.status();
  for (size_t i = 0; i < prompts_.size(); ++i) {
    EXPECT_EQ(one->prompts[i].samples[0].tokens,
              greedy->prompts[i].samples[0].tokens);
    const auto& beams = four->prompts[i].samples;
    ASSERT_EQ(beams.size(), 4u);
    for (size_t b = 0; b < 4; ++b) {
      EXPECT_EQ(beams[b].tokens.size(), 20u);
      EXPECT_EQ(beams[b].reason, FinishReason::kMaxTokens);
      if (b == 0) continue;
      EXPECT_GE(beams[b - 1].score, beams[b].score);
      EXPECT_NE(beams[b - 1].tokens, beams[b].tokens);
    }
    EXPECT_LT(beams[0].score, 0);
  }
  EXPECT_EQ(one->stats.beam_forks, 0u);
  EXPECT_GT(four->stats.beam_forks, 0u);
  EXPECT_EQ(four->stats.scheduler.output_tokens, 2u * 4 * 20);
  EXPECT_GT(four->stats.cache.blocks_copied, 0u);
}

TEST_F(GenerateBeamsTest, WhatDrawsOrGuessesIsRefused) {
  options_.samples = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(2).status()));
  options_.samples = 1;
  options_.draft_tokens = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(2).status()));
  options_.draft_tokens = 0;
  options_.sampling.temperature = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(2).status()));
}

}  // namespace
}  // namespace paged_kv::tool
