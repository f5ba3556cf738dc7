// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/transformer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "docs/examples/llm/engine/random_model.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/engine/support/engine_bench.h"
#include "tests/examples/llm/engine/support/reference_transformer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

std::vector<TokenId> RandomTokens(size_t n, const ModelConfig& config,
                                  std::mt19937_64& random) {
  std::vector<TokenId> tokens(n);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % config.vocab);
  }
  return tokens;
}

ModelCacheOptions CacheOf(uint32_t block_tokens) {
  ModelCacheOptions options;
  options.dtype = DType::kF32;
  options.block_tokens = block_tokens;
  options.blocks = 200;
  return options;
}

void ExpectNear(absl::Span<const float> logits,
                absl::Span<const double> reference, double limit) {
  ASSERT_EQ(logits.size(), reference.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_NEAR(double{logits[i]}, reference[i], limit) << "logit " << i;
  }
}

struct Case {
  std::string name;
  ModelConfig config;
  WeightType type;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16}) {
    const std::string suffix = std::string("_") + WeightTypeName(type);
    cases.push_back({"qwen2" + suffix, SmallQwen2(), type});
    cases.push_back({"llama" + suffix, SmallLlama(), type});
    ModelConfig one = SmallLlama();  // one KV head for all queries
    one.kv_heads = 1;
    one.head_dim = 8;
    one.hidden = 33;
    one.intermediate = 130;
    cases.push_back({"mqa" + suffix, one, type});
  }
  return cases;
}

class TransformerTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Model> Make() const {
    return MakeRandomModel(GetParam().config, GetParam().type, seed_);
  }
  // Activations keep 16 bits where weights are bf16.
  double limit() const {
    return GetParam().type == WeightType::kF32 ? 2e-5 : 5e-4;
  }

  const uint64_t seed_ = TestSeed(5);
  std::mt19937_64 random_{seed_};
};

TEST_P(TransformerTest, PromptEqualsReference) {
  const std::unique_ptr<Model> model = Make();
  for (const size_t length : {1, 17, 70}) {
    const auto tokens = RandomTokens(length, GetParam().config, random_);
    EngineBench bench(Make(), CacheOf(16));
    SequenceId id;
    ExpectNear(bench.Extend(&id, tokens), ReferenceLogits(*model, tokens),
               limit());
  }
}

// Chunks of any size, single tokens among them, over blocks that they do not
// align with.
TEST_P(TransformerTest, ChunksEqualReference) {
  const std::unique_ptr<Model> model = Make();
  const auto tokens = RandomTokens(64, GetParam().config, random_);
  const std::vector<double> reference = ReferenceLogits(*model, tokens);
  for (const uint32_t block_tokens : {1, 5, 16}) {
    EngineBench bench(Make(), CacheOf(block_tokens));
    SequenceId id;
    std::vector<float> logits;
    for (size_t done = 0; done < tokens.size();) {
      const size_t chunk =
          std::min<size_t>(1 + random_() % 9, tokens.size() - done);
      const auto part =
          bench.Extend(&id, absl::MakeConstSpan(tokens).subspan(done, chunk));
      logits.insert(logits.end(), part.begin(), part.end());
      done += chunk;
    }
    ExpectNear(logits, reference, limit());
  }
}

TEST_P(TransformerTest, StretchedRopeEqualsReference) {
  const auto stretched = [&] {
    std::unique_ptr<Model> model = Make();
    for (uint32_t i = 0; i < GetParam().config.head_dim / 2; ++i) {
      model->rope_factors.push_back(1.0F + 0.5F * static_cast<float>(i));
    }
    return model;
  };
  const auto tokens = RandomTokens(40, GetParam().config, random_);
  EngineBench bench(stretched(), CacheOf(16));
  SequenceId id;
  ExpectNear(bench.Extend(&id, tokens), ReferenceLogits(*stretched(), tokens),
             limit());
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerTest, testing::ValuesIn(Cases()),
                         [](const auto& instance) {
                           return instance.param.name;
                         });

TEST(TransformerErrorsTest, RefusesModelsThatDoNotFitTogether) {
  attention::SerialFor serial;
  const auto refused = [&](void (*spoil)(Model&)) {
    auto model = MakeRandomModel(SmallQwen2(), WeightType::kF32, 1);
    spoil(*model);
    const auto made = Transformer::Create(std::move(model), {}, &serial);
    return absl::IsInvalidArgument(made.status());
  };
  EXPECT_TRUE(refused([](Model& m) { m.layers.pop_back(); }));
  EXPECT_TRUE(refused([](Model& m) { m.final_norm.pop_back(); }));
  EXPECT_TRUE(refused([](Model& m) { m.config.vocab += 1; }));
  EXPECT_TRUE(refused([](Model& m) { m.config.head_dim = 12; }));
  EXPECT_TRUE(refused([](Model& m) { m.layers[1].wo = m.layers[1].wk; }));
  EXPECT_TRUE(refused([](Model& m) { m.layers[0].bq.pop_back(); }));
  EXPECT_TRUE(refused([](Model& m) { m.layers[2].ffn_norm.clear(); }));
  EXPECT_TRUE(refused([](Model& m) { m.output.rows -= 1; }));
}

TEST(TransformerErrorsTest, RefusesTokensOutsideTheVocabulary) {
  attention::SerialFor serial;
  auto model = Transformer::Create(
      MakeRandomModel(SmallQwen2(), WeightType::kF32, 1), {}, &serial);
  ASSERT_TRUE(model.ok());
  auto cache = MakeModelCache(SmallQwen2(), CacheOf(16));
  ASSERT_TRUE(cache.ok());
  const auto attention = MakeCpuAttention(*PagesOf(**cache), 6, &serial);
  StepRunner runner(cache->get(), model->get(), attention.get());
  for (const TokenId bad : {-1, 131}) {
    const std::vector<TokenId> tokens = {3, bad};
    const auto admission = (*cache)->Allocate(tokens);
    ASSERT_TRUE(admission.ok());
    const auto logits = runner.Run(admission->step, {{tokens, 0, 1}});
    EXPECT_TRUE(absl::IsInvalidArgument(logits.status())) << logits.status();
    const std::vector<TokenId> fewer = {3};
    EXPECT_TRUE(absl::IsInvalidArgument(
        runner.Run(admission->step, {{fewer, 0, 1}}).status()));
    ASSERT_TRUE((*cache)->Retire(admission->step).ok());
  }
}

}  // namespace
}  // namespace paged_kv::llm
