// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Beam search over the paged cache finds what a search finds that computes
// every beam from its first token, and holds no block that it does not need.

#include "docs/examples/llm/engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "docs/examples/llm/engine/random_model.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/engine/support/engine_bench.h"
#include "tests/examples/llm/engine/support/reference_transformer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

using Tokens = std::vector<TokenId>;

bool Ends(const Tokens& tokens, const Tokens& stop) {
  return !tokens.empty() &&
         std::count(stop.begin(), stop.end(), tokens.back()) > 0;
}

// Log probabilities of what follows, in double precision, from the beginning.
std::vector<double> LogProbabilities(const Model& model, const Tokens& prompt,
                                     const Tokens& tokens) {
  Tokens all = prompt;
  all.insert(all.end(), tokens.begin(), tokens.end());
  std::vector<double> logits = ReferenceLogits(model, all);
  logits.erase(logits.begin(),
               logits.end() - static_cast<ptrdiff_t>(model.config.vocab));
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (double& logit : logits) logit -= std::log(sum);
  return logits;
}

// The search as it is defined: all continuations, sorted. *margin: the least
// difference of scores by which a beam was chosen over another.
std::vector<Beam> ObviousBeams(const Model& model, const Tokens& prompt,
                               uint32_t count, uint32_t max_output_tokens,
                               const Tokens& stop, double* margin) {
  std::vector<Beam> beams(1);
  for (uint32_t step = 0; step < max_output_tokens; ++step) {
    std::vector<Beam> all;
    for (const Beam& beam : beams) {
      if (Ends(beam.tokens, stop)) {
        all.push_back(beam);
        continue;
      }
      const auto next = LogProbabilities(model, prompt, beam.tokens);
      for (size_t token = 0; token < next.size(); ++token) {
        Beam child = beam;
        child.tokens.push_back(static_cast<TokenId>(token));
        child.score += next[token];
        all.push_back(child);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Beam& a, const Beam& b) {
      return a.score > b.score;
    });
    for (size_t i = 0; i < count && i + 1 < all.size(); ++i) {
      *margin = std::min(*margin, all[i].score - all[i + 1].score);
    }
    if (all.size() > count) all.resize(count);
    beams = all;
  }
  return beams;
}

class BeamSearchTest : public testing::Test {
 protected:
  // The model is made by `make` twice: the engine takes one apart.
  template <typename Make>
  void Start(const Make& make, const ModelCacheOptions& cache) {
    engine_.reset();
    model_ = make();
    auto transformer = Transformer::Create(make(), {}, &threads_);
    ASSERT_TRUE(transformer.ok()) << transformer.status();
    transformer_ = *std::move(transformer);
    EngineOptions options;
    options.cache = cache;
    options.cache.dtype = DType::kF32;
    options.scheduler.max_batch_sequences = 8;
    auto engine = ServingEngine::Create(transformer_.get(), options, &threads_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  void StartRandom(const ModelConfig& config, uint32_t blocks = 60) {
    ModelCacheOptions cache;
    cache.block_tokens = 4;
    cache.blocks = blocks;
    Start([&] { return MakeRandomModel(config, WeightType::kF32, 5); }, cache);
  }

  Tokens RandomPrompt(size_t length) {
    Tokens prompt(length);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(random_() % model_->config.vocab);
    }
    return prompt;
  }

  // Every block held is in the table of a beam that lives, and is written to
  // by one alone.
  void ExpectOnlyLivingBeams(absl::Span<const Beam> beams) {
    const KvCacheManager& cache = engine_->cache();
    const auto living =
        std::count_if(beams.begin(), beams.end(), [](const Beam& beam) {
          return beam.reason == FinishReason::kUnfinished;
        });
    const std::vector<SequenceId> sequences = cache.Sequences();
    ASSERT_EQ(sequences.size(), static_cast<size_t>(living));
    std::set<BlockId> held;
    for (const SequenceId id : sequences) {
      const auto table = cache.BlockTable(id, kAllLayers);
      ASSERT_TRUE(table.ok()) << table.status();
      held.insert(table->begin(), table->end());
    }
    EXPECT_EQ(cache.Stats().pools[0].held.value(), held.size());
    const absl::Status status = cache.CheckInvariants();
    EXPECT_TRUE(status.ok()) << status;
  }

  absl::StatusOr<BeamResult> Search(const Tokens& prompt, uint32_t beams,
                                    uint32_t max_output_tokens,
                                    const Tokens& stop = {}) {
    BeamRequest request;
    request.prompt = prompt;
    request.beams = beams;
    request.max_output_tokens = max_output_tokens;
    request.stop_tokens = stop;
    request.step_tokens = 7;
    request.after_step = [&](absl::Span<const Beam> so_far) {
      ExpectOnlyLivingBeams(so_far);
      return true;
    };
    auto result = engine_->SearchBeams(request);
    ExpectOnlyLivingBeams({});
    return result;
  }

  void ExpectObvious(const Tokens& prompt, uint32_t beams, uint32_t tokens,
                     const Tokens& stop) {
    SCOPED_TRACE(beams);
    const auto found = Search(prompt, beams, tokens, stop);
    ASSERT_TRUE(found.ok()) << found.status();
    double margin = 1;
    const auto expected =
        ObviousBeams(*model_, prompt, beams, tokens, stop, &margin);
    ASSERT_EQ(found->beams.size(), expected.size());
    if (margin < 1e-5) std::printf("scores only %.2g apart\n", margin);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found->beams[i].tokens, expected[i].tokens) << "beam " << i;
      EXPECT_NEAR(found->beams[i].score, expected[i].score, 1e-4);
      EXPECT_EQ(found->beams[i].reason, Ends(expected[i].tokens, stop)
                                            ? FinishReason::kStopToken
                                            : FinishReason::kMaxTokens);
    }
    EXPECT_EQ(found->forks > 0, beams > 1);
  }

  std::mt19937_64 random_{TestSeed(21)};
  attention::ThreadPool threads_{2};
  std::unique_ptr<Model> model_;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<ServingEngine> engine_;
};

TEST_F(BeamSearchTest, FindsWhatTheObviousSearchFinds) {
  for (const ModelConfig& config : {SmallQwen2(), SmallLlama()}) {
    StartRandom(config);
    // A prompt that ends inside a block, so that beams write into a shared one.
    const Tokens prompt = RandomPrompt(18);
    for (const uint32_t beams : {1u, 2u, 3u, 7u}) {
      ExpectObvious(prompt, beams, 9, {});
    }
    EXPECT_GT(engine_->cache().Stats().blocks_copied, 0u);
  }
}

TEST_F(BeamSearchTest, BeamsThatEndStayWhileTheirScoreIsAmongTheBest) {
  StartRandom(SmallQwen2());
  const Tokens prompt = RandomPrompt(11);
  const auto free = Search(prompt, 4, 8);
  ASSERT_TRUE(free.ok()) << free.status();
  // What the best beams say on their way ends them now.
  const Tokens stop = {free->beams[0].tokens[3], free->beams[1].tokens[6]};
  ExpectObvious(prompt, 4, 8, stop);
}

TEST_F(BeamSearchTest, OneBeamIsGreedy) {
  StartRandom(SmallLlama());
  const Tokens prompt = RandomPrompt(30);
  const auto found = Search(prompt, 1, 20);
  ASSERT_TRUE(found.ok()) << found.status();
  EngineRequest request;
  request.id = RequestId(1);
  request.prompt = prompt;
  request.max_output_tokens = 20;
  ASSERT_TRUE(engine_->Submit(request).ok());
  while (!engine_->Idle()) ASSERT_TRUE(engine_->Step().ok());
  const auto greedy = engine_->TakeFinished();
  const auto output = greedy->Output(0);
  EXPECT_EQ(found->beams[0].tokens, Tokens(output.begin(), output.end()));
}

TEST_F(BeamSearchTest, SharesThePromptWithThoseBeforeIt) {
  StartRandom(SmallLlama());
  const Tokens prompt = RandomPrompt(30);
  const auto first = Search(prompt, 3, 5);
  const auto second = Search(prompt, 3, 5);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->computed_tokens + 28, first->computed_tokens);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first->beams[i].tokens, second->beams[i].tokens);
  }
}

TEST_F(BeamSearchTest, APoolThatIsTooSmallIsAnErrorThatLeavesNothing) {
  StartRandom(SmallLlama(), /*blocks=*/9);
  const Tokens prompt = RandomPrompt(30);  // 8 blocks, the last half full
  const auto found = Search(prompt, 6, 20);
  EXPECT_TRUE(absl::IsResourceExhausted(found.status())) << found.status();
  EXPECT_TRUE(Search(prompt, 1, 3).ok());
}

TEST_F(BeamSearchTest, BadRequestsAreRefused) {
  StartRandom(SmallLlama());
  const Tokens prompt = RandomPrompt(5);
  EXPECT_TRUE(absl::IsInvalidArgument(Search(prompt, 0, 5).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Search({}, 2, 5).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Search({-1}, 2, 5).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Search(prompt, 1000, 5).status()));
  const auto nothing = Search(prompt, 2, 0);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_TRUE(nothing->beams.empty());
}

TEST_F(BeamSearchTest, EndsWhenAskedTo) {
  StartRandom(SmallLlama());
  const Tokens prompt = RandomPrompt(5);
  BeamRequest request;
  request.prompt = prompt;
  request.beams = 3;
  request.max_output_tokens = 50;
  request.after_step = [](absl::Span<const Beam> beams) {
    return beams[0].tokens.size() < 4;
  };
  const auto found = engine_->SearchBeams(request);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->beams.size(), 3u);
  EXPECT_EQ(found->beams[0].tokens.size(), 4u);
  EXPECT_EQ(found->beams[0].reason, FinishReason::kUnfinished);
  ExpectOnlyLivingBeams({});
}

TEST_F(BeamSearchTest, FindsItInARealModelToo) {
  const std::string path = SharedFile("model/stories260K.bin");
  if (path.empty()) {
    GTEST_SKIP() << "model/stories260K.bin of the shared folder is not there";
  }
  const auto make = [&] {
    auto model = LoadModel(path, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  };
  Start(make, {});
  ExpectObvious({1, 403, 407, 261, 378}, 4, 10, {});
}

}  // namespace
}  // namespace paged_kv::llm
