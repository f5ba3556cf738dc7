// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomLogits(size_t size, std::mt19937_64* random) {
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(*random);
  return logits;
}

// Probabilities after temperature, top_k and top_p, by sorting everything.
std::vector<double> Expected(const std::vector<float>& logits,
                             const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && options.top_k < order.size()) {
    order.resize(options.top_k);
  }
  std::vector<double> weights(logits.size(), 0.0);
  double sum = 0;
  for (const size_t i : order) {
    weights[i] = std::exp((double{logits[i]} - double{logits[order[0]]}) /
                          double{options.temperature});
    sum += weights[i];
  }
  double reached = 0;
  double kept = 0;
  for (const size_t i : order) {
    // The margin: the sampler adds up numbers of single precision.
    if (reached >= double{options.top_p} * sum - 1e-6 * sum) {
      weights[i] = 0;
    }
    reached += weights[i];
    kept += weights[i];
  }
  for (double& weight : weights) weight /= kept;
  return weights;
}

TEST(SamplingTest, TemperatureZeroIsGreedyAndTakesTheFirstOfEquals) {
  Sampler sampler;
  const std::vector<float> logits = {1, 3, 2, 3};
  for (uint64_t index = 0; index < 100; ++index) {
    EXPECT_EQ(sampler.Draw(logits, {0.0F, 2, 0.5F, 7}, 0, index), 1);
  }
  EXPECT_EQ(MostLikely(logits), 1);
}

TEST(SamplingTest, DrawsFollowTheProbabilities) {
  std::mt19937_64 random(TestSeed(30));
  const SamplingOptions cases[] = {{1.0F, 0, 1.0F, 0},  {0.7F, 0, 1.0F, 0},
                                   {2.0F, 5, 1.0F, 0},  {1.0F, 0, 0.8F, 0},
                                   {1.5F, 8, 0.6F, 0},  {1.0F, 1, 1.0F, 0},
                                   {1.0F, 0, 1e-3F, 0}, {1.0F, 500, 0.99F, 0}};
  constexpr int kDraws = 40000;
  for (SamplingOptions options : cases) {
    options.seed = random();
    const std::vector<float> logits = RandomLogits(20, &random);
    const std::vector<double> expected = Expected(logits, options);
    std::vector<int> drawn(logits.size(), 0);
    Sampler sampler;
    for (uint64_t i = 0; i < kDraws; ++i) {
      ++drawn[static_cast<size_t>(sampler.Draw(logits, options, i % 8, i / 8))];
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(drawn[i], 0) << "token " << i;
        continue;
      }
      // Five standard deviations of a binomial, and half a draw.
      const double mean = kDraws * expected[i];
      const double deviation = std::sqrt(mean * (1 - expected[i]));
      EXPECT_NEAR(drawn[i], mean, 5 * deviation + 0.5) << "token " << i;
    }
  }
}

TEST(SamplingTest, ADrawIsAFunctionOfSeedStreamAndIndex) {
  std::mt19937_64 random(TestSeed(31));
  const std::vector<float> logits = RandomLogits(1000, &random);
  const SamplingOptions options{1.0F, 0, 0.95F, 42};
  Sampler one;
  Sampler other;
  int equal_streams = 0;
  int equal_seeds = 0;
  for (uint64_t index = 0; index < 500; ++index) {
    const TokenId token = one.Draw(logits, options, 3, index);
    // Draws in between change nothing.
    other.Draw(RandomLogits(10, &random), options, index, 0);
    EXPECT_EQ(other.Draw(logits, options, 3, index), token);
    equal_streams += other.Draw(logits, options, 4, index) == token ? 1 : 0;
    SamplingOptions reseeded = options;
    reseeded.seed = 43;
    equal_seeds += other.Draw(logits, reseeded, 3, index) == token ? 1 : 0;
  }
  EXPECT_LT(equal_streams, 100);
  EXPECT_LT(equal_seeds, 100);
}

TEST(SamplingTest, LogitsThatAreNoNumbersDoNoHarm) {
  std::mt19937_64 random(TestSeed(32));
  Sampler sampler;
  for (int round = 0; round < 300; ++round) {
    std::vector<float> logits = RandomLogits(1 + random() % 200, &random);
    for (float& logit : logits) {
      if (random() % 2 == 0) {
        constexpr float kOdd[] = {kNan, kInfinity, -kInfinity};
        logit = kOdd[random() % (round % 3 + 1)];
      }
    }
    const SamplingOptions options{1.0F, round % 2 == 0 ? 7U : 0U, 0.9F, 5};
    const TokenId token = sampler.Draw(logits, options, 0, 0);
    EXPECT_GE(token, 0);
    EXPECT_LT(static_cast<size_t>(token), logits.size());
  }
}

TEST(SamplingTest, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_TRUE(Validate({2.0F, 10, 0.1F, 1}).ok());
  for (const float temperature : {-0.1F, kNan, kInfinity}) {
    EXPECT_FALSE(Validate({temperature, 0, 1.0F, 0}).ok());
  }
  for (const float top_p : {0.0F, -1.0F, 1.01F, kNan}) {
    EXPECT_FALSE(Validate({1.0F, 0, top_p, 0}).ok());
  }
}

}  // namespace
}  // namespace paged_kv::llm
