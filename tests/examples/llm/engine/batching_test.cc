// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a request is answered does not depend on what is served beside it.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "docs/examples/llm/engine/random_model.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/engine/support/engine_bench.h"
#include "tests/examples/llm/engine/support/reference_transformer.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

using Answers = std::map<uint64_t, std::vector<TokenId>>;  // prompt and output

struct TestRequest {
  std::vector<TokenId> prompt;
  uint32_t output_tokens = 0;
};

struct Case {
  std::string name;
  WeightType weights;
  DType kv;
};

class BatchingTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config_ = SmallQwen2();
    auto model = Transformer::Create(Make(), {}, &threads_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    MakeRequests();
  }

  std::unique_ptr<Model> Make() const {
    return MakeRandomModel(config_, GetParam().weights, 3);
  }

  // Half of the prompts begin like others, some are a single token.
  void MakeRequests() {
    const auto random_tokens = [&](size_t n) {
      std::vector<TokenId> tokens(n);
      for (TokenId& t : tokens) t = static_cast<TokenId>(random_() % 131);
      return tokens;
    };
    const std::vector<TokenId> common = random_tokens(50);
    for (size_t i = 0; i < 64; ++i) {
      TestRequest request;
      if (i % 2 == 0) {
        request.prompt.assign(common.begin(),
                              common.begin() + 20 + random_() % 31);
      }
      const auto own = random_tokens(1 + random_() % 60);
      request.prompt.insert(request.prompt.end(), own.begin(), own.end());
      request.output_tokens = static_cast<uint32_t>(1 + random_() % 40);
      requests_.push_back(request);
    }
  }

  EngineOptions Options(uint32_t blocks) const {
    EngineOptions options;
    options.cache.dtype = GetParam().kv;
    options.cache.blocks = blocks;
    return options;
  }

  std::unique_ptr<ServingEngine> MakeEngine(const EngineOptions& options) {
    auto engine = ServingEngine::Create(model_.get(), options, &threads_);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  void Submit(ServingEngine& engine, size_t i) {
    EngineRequest request;
    request.id = RequestId(i);
    request.prompt = requests_[i].prompt;
    request.max_output_tokens = requests_[i].output_tokens;
    ASSERT_TRUE(engine.Submit(request).ok());
  }

  void Collect(ServingEngine& engine, Answers* answers) {
    while (auto finished = engine.TakeFinished()) {
      if (finished->samples[0].reason == FinishReason::kCancelled) continue;
      EXPECT_TRUE(finished->status.ok()) << finished->status;
      (*answers)[finished->id.value()] = finished->samples[0].tokens;
    }
  }

  // Each alone, whole prompts at once, nothing shared.
  Answers ServeAlone() {
    EngineOptions options = Options(40);
    options.cache.prefix_caching = false;
    const auto engine = MakeEngine(options);
    Answers answers;
    for (size_t i = 0; i < requests_.size(); ++i) {
      Submit(*engine, i);
      while (!engine->Idle()) EXPECT_TRUE(engine->Step().ok());
      Collect(*engine, &answers);
    }
    return answers;
  }

  // About a third of what 16 sequences would hold; nothing is kept in reserve,
  // so that growing ones take it from each other.
  EngineOptions Crowded() const {
    EngineOptions options = Options(40);
    options.scheduler.max_batch_sequences = 16;
    options.scheduler.max_batch_tokens = 48;
    options.scheduler.max_chunk_tokens = 20;
    options.scheduler.growth_reserve_tokens = 0;
    return options;
  }

  // Serves all together and compares with what each is answered alone. Those
  // whose number divides by 9 are cancelled, wherever they are.
  BatchSchedulerStats ExpectSameTogether(const EngineOptions& options) {
    if (alone_.empty()) alone_ = ServeAlone();
    EXPECT_EQ(alone_.size(), requests_.size());
    const auto engine = MakeEngine(options);
    Answers together;
    for (size_t i = 0; i < requests_.size(); ++i) Submit(*engine, i);
    for (size_t step = 0; !engine->Idle(); ++step) {
      const auto emitted = engine->Step();
      EXPECT_TRUE(emitted.ok()) << emitted.status();
      if (!emitted.ok()) break;
      if (step % 7 == 3 && step / 7 * 9 < requests_.size()) {
        engine->Cancel(RequestId(step / 7 * 9)).IgnoreError();
      }
      Collect(*engine, &together);
      EXPECT_TRUE(engine->cache().CheckInvariants().ok());
      EXPECT_TRUE(engine->scheduler().CheckInvariants().ok());
    }
    const BatchSchedulerStats stats = engine->scheduler().Stats();
    EXPECT_GT(stats.cancelled, 0u);
    EXPECT_GT(engine->cache().Stats().hit_tokens, 0u);
    EXPECT_EQ(together.size() + stats.cancelled, requests_.size());
    for (const auto& [id, tokens] : together) {
      ExpectSame(alone_.at(id), tokens, id);
    }
    return stats;
  }

  static void ExpectDrafted(const BatchSchedulerStats& stats, bool drafted) {
    EXPECT_EQ(stats.drafted_tokens > stats.accepted_tokens, drafted);
    EXPECT_EQ(stats.accepted_tokens > 0, drafted);
  }

  // The two best logits behind the first `length` tokens lie this far apart.
  double Gap(const std::vector<TokenId>& tokens, size_t length) const {
    std::vector<double> logits =
        ReferenceLogits(*Make(), absl::MakeConstSpan(tokens).first(length));
    logits.erase(logits.begin(), logits.end() - config_.vocab);
    std::nth_element(logits.begin(), logits.begin() + 1, logits.end(),
                     std::greater<>());
    return logits[0] - logits[1];
  }

  // Equal, or different from a point on where either choice is right.
  void ExpectSame(const std::vector<TokenId>& alone,
                  const std::vector<TokenId>& together, uint64_t id) const {
    ASSERT_EQ(alone.size(), together.size()) << "request " << id;
    const auto at = std::mismatch(alone.begin(), alone.end(), together.begin());
    if (at.first == alone.end()) return;
    const auto position = static_cast<size_t>(at.first - alone.begin());
    const double gap = Gap(alone, position);
    std::printf(
        "request %llu differs at position %zu, best logits %.2g apart\n",
        static_cast<unsigned long long>(id), position, gap);
    EXPECT_LE(gap, 1e-3) << "request " << id << ", position " << position;
  }

  ModelConfig config_;
  attention::ThreadPool threads_{2};
  std::unique_ptr<Transformer> model_;
  std::mt19937_64 random_{TestSeed(11)};
  std::vector<TestRequest> requests_;
  Answers alone_;
};

TEST_P(BatchingTest, TogetherAsAlone) {
  for (const uint32_t drafts : {0u, 4u}) {
    SCOPED_TRACE(drafts);
    EngineOptions options = Crowded();
    options.scheduler.max_draft_tokens = drafts;
    const BatchSchedulerStats stats = ExpectSameTogether(options);
    EXPECT_GT(stats.preemptions, 0u);
    EXPECT_EQ(stats.swap_outs, 0u);
    ExpectDrafted(stats, drafts > 0);
  }
}

// As many pages to decode in as there were blocks, and room for all behind
// them.
TEST_P(BatchingTest, TogetherAsAlonePreemptedBySwap) {
  for (const uint32_t drafts : {0u, 4u}) {
    SCOPED_TRACE(drafts);
    EngineOptions options = Crowded();
    options.cache.device_pages = options.cache.blocks;
    options.cache.blocks *= 4;
    options.scheduler.decode_tier = Tier::kDevice;
    options.scheduler.recompute_token_bytes = 0;  // always swap
    options.scheduler.max_draft_tokens = drafts;
    const BatchSchedulerStats stats = ExpectSameTogether(options);
    EXPECT_GT(stats.swap_outs, 0u);
    EXPECT_GT(stats.swap_ins, stats.swap_outs);
    EXPECT_EQ(stats.preemptions, stats.swap_outs);
    EXPECT_EQ(stats.recomputed_tokens, 0u);
    ExpectDrafted(stats, drafts > 0);
  }
}

// Little host memory besides: both ways at once.
TEST_P(BatchingTest, TogetherAsAlonePreemptedBothWays) {
  EngineOptions options = Crowded();
  options.cache.device_pages = 24;
  options.scheduler.decode_tier = Tier::kDevice;
  options.scheduler.recompute_token_bytes = 0;
  options.scheduler.max_draft_tokens = 3;
  const BatchSchedulerStats stats = ExpectSameTogether(options);
  EXPECT_GT(stats.swap_outs, 0u);
  EXPECT_GT(stats.preemptions, stats.swap_outs);
}

// Alone, so that rows of drafts are all that differs from plain decoding.
TEST_P(BatchingTest, DraftsChangeNothingButTheSteps) {
  const auto serve = [&](uint32_t drafts, BatchSchedulerStats* stats) {
    EngineOptions options = Options(40);
    options.scheduler.max_draft_tokens = drafts;
    const auto engine = MakeEngine(options);
    Answers answers;
    for (size_t i = 0; i < 24; ++i) {
      Submit(*engine, i);
      while (!engine->Idle()) EXPECT_TRUE(engine->Step().ok());
      Collect(*engine, &answers);
      EXPECT_TRUE(engine->cache().CheckInvariants().ok());
    }
    *stats = engine->scheduler().Stats();
    return answers;
  };
  BatchSchedulerStats plain, drafting;
  const Answers expected = serve(0, &plain);
  const Answers answers = serve(6, &drafting);
  for (const auto& [id, tokens] : answers) {
    ExpectSame(expected.at(id), tokens, id);
  }
  EXPECT_GT(drafting.accepted_tokens, 0u);
  EXPECT_LT(drafting.steps, plain.steps);
  EXPECT_EQ(plain.output_tokens, drafting.output_tokens);
  std::printf("%llu steps, with drafts %llu; %llu of %llu drafts right\n",
              static_cast<unsigned long long>(plain.steps),
              static_cast<unsigned long long>(drafting.steps),
              static_cast<unsigned long long>(drafting.accepted_tokens),
              static_cast<unsigned long long>(drafting.drafted_tokens));
}

// Samples of one request draw from streams of their own, which do not depend
// on the batch either.
TEST_P(BatchingTest, SamplesAreDrawnTheSameInAnyBatch) {
  const auto serve = [&](uint32_t others) {
    const auto engine = MakeEngine(Options(200));
    EngineRequest request;
    request.id = RequestId(1000);
    request.prompt = requests_[0].prompt;
    request.max_output_tokens = 12;
    request.samples = 4;
    request.sampling.temperature = 0.8F;
    request.sampling.top_k = 20;
    request.sampling.top_p = 0.9F;
    request.sampling.seed = 77;
    for (uint32_t i = 0; i < others; ++i) Submit(*engine, i);
    EXPECT_TRUE(engine->Submit(request).ok());
    std::vector<std::vector<TokenId>> samples(4);
    while (!engine->Idle()) {
      const auto emitted = engine->Step();
      EXPECT_TRUE(emitted.ok()) << emitted.status();
      for (const EmittedToken& token : *emitted) {
        if (token.request != request.id) continue;
        samples[token.sample].push_back(token.token);
      }
    }
    return samples;
  };
  const auto alone = serve(0);
  EXPECT_EQ(alone, serve(12));
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(alone[3].size(), 12u);
}

INSTANTIATE_TEST_SUITE_P(
    Types, BatchingTest,
    testing::Values(Case{"f32_kv_f32", WeightType::kF32, DType::kF32},
                    Case{"bf16_kv_f32", WeightType::kBf16, DType::kF32},
                    Case{"bf16_kv_bf16", WeightType::kBf16, DType::kBF16}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace paged_kv::llm
