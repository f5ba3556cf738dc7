// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A real model against values that another implementation computed: all 256
// tokens, their logits, and what attention reads and gives in every layer.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "docs/examples/llm/engine/serving_engine.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/engine/support/engine_bench.h"

namespace paged_kv::llm {
namespace {

constexpr size_t kTokens = 256;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

std::vector<float> GoldenFloats(const std::string& name) {
  const std::string bytes = ReadAll(SharedFile("golden/" + name));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), values.size() * sizeof(float),
              reinterpret_cast<char*>(values.data()));
  return values;
}

std::vector<TokenId> GoldenTokens() {
  std::istringstream lines(ReadAll(SharedFile("golden/greedy_tokens.txt")));
  std::vector<TokenId> tokens;
  for (TokenId token; lines >> token;) tokens.push_back(token);
  return tokens;
}

double MaxDifference(absl::Span<const float> a, absl::Span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    // Not std::max, which would drop a NaN.
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

class EngineGoldenTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (SharedFile("model/stories260K.bin").empty() ||
        SharedFile("golden/logits_f32.bin").empty()) {
      GTEST_SKIP() << "the shared folder with the model and its golden values "
                      "is not there";
    }
    tokens_ = GoldenTokens();
    ASSERT_EQ(tokens_.size(), kTokens);
  }

  static std::unique_ptr<Model> Load() {
    auto model = LoadModel(SharedFile("model/stories260K.bin"));
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  static ModelCacheOptions CacheOf(DType dtype) {
    ModelCacheOptions options;
    options.dtype = dtype;
    options.blocks = 40;
    return options;
  }

  std::vector<TokenId> tokens_;
};

TEST_P(EngineGoldenTest, GreedyTokens) {
  if (HasScales(GetParam())) GTEST_SKIP() << "8-bit KV may choose others";
  attention::ThreadPool threads(2);
  auto model = Transformer::Create(Load(), {}, &threads);
  ASSERT_TRUE(model.ok()) << model.status();
  EngineOptions options;
  options.cache = CacheOf(GetParam());
  auto engine = ServingEngine::Create(model->get(), options, &threads);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EngineRequest request;
  request.id = RequestId(1);
  request.prompt = absl::MakeConstSpan(tokens_).first(1);
  request.max_output_tokens = kTokens - 1;
  ASSERT_TRUE((*engine)->Submit(request).ok());
  std::vector<TokenId> streamed = {tokens_[0]};
  while (!(*engine)->Idle()) {
    const auto emitted = (*engine)->Step();
    ASSERT_TRUE(emitted.ok()) << emitted.status();
    for (const EmittedToken& token : *emitted) streamed.push_back(token.token);
  }
  EXPECT_EQ(streamed, tokens_);
  const auto finished = (*engine)->TakeFinished();
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->samples[0].tokens, tokens_);
}

double LogitLimit(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1e-4;
    case DType::kF16:
      return 0.06;
    case DType::kBF16:
      return 0.4;
    default:
      return HUGE_VAL;  // reported only
  }
}

TEST_P(EngineGoldenTest, LogitsOfDecodingTokenByToken) {
  EngineBench bench(Load(), CacheOf(GetParam()), /*threads=*/1);
  SequenceId id;
  std::vector<float> logits;
  for (const TokenId& token : tokens_) {
    const std::vector<float> row = bench.Extend(&id, {token});
    logits.insert(logits.end(), row.begin(), row.end());
  }
  const double error = MaxDifference(logits, GoldenFloats("logits_f32.bin"));
  std::printf("%s: largest difference of a logit %.3g\n", DTypeName(GetParam()),
              error);
  EXPECT_LE(error, LogitLimit(GetParam()));
}

TEST_P(EngineGoldenTest, LogitsOfPrefillingAllAtOnce) {
  EngineBench bench(Load(), CacheOf(GetParam()));
  SequenceId id;
  const std::vector<float> logits = bench.Extend(&id, tokens_);
  const double error = MaxDifference(logits, GoldenFloats("logits_f32.bin"));
  std::printf("%s: largest difference of a logit %.3g\n", DTypeName(GetParam()),
              error);
  EXPECT_LE(error, LogitLimit(GetParam()));
}

TEST_P(EngineGoldenTest, WhatAttentionReadsAndGives) {
  if (GetParam() != DType::kF32) GTEST_SKIP() << "golden values are of f32";
  EngineBench bench(Load(), CacheOf(DType::kF32));
  SequenceId id;
  bench.Extend(&id, tokens_);
  const std::vector<RecordedLayer>& layers = bench.recorded().layers();
  // The files hold K and V by layer, [layers, tokens, width], and Q and the
  // outputs by token, [tokens, layers, width].
  std::vector<float> q, k, v, out;
  const auto append = [](const std::vector<float>& from, size_t token,
                         std::vector<float>* to) {
    const auto width = static_cast<ptrdiff_t>(from.size() / kTokens);
    const auto first = from.begin() + static_cast<ptrdiff_t>(token) * width;
    to->insert(to->end(), first, first + width);
  };
  for (size_t token = 0; token < kTokens; ++token) {
    for (const RecordedLayer& layer : layers) {
      append(layer.q, token, &q);
      append(layer.out, token, &out);
    }
  }
  for (const RecordedLayer& layer : layers) {
    k.insert(k.end(), layer.k.begin(), layer.k.end());
    v.insert(v.end(), layer.v.begin(), layer.v.end());
  }
  EXPECT_LE(MaxDifference(q, GoldenFloats("q_rope_f32.bin")), 1e-4);
  EXPECT_LE(MaxDifference(k, GoldenFloats("kcache_f32.bin")), 1e-4);
  EXPECT_LE(MaxDifference(v, GoldenFloats("vcache_f32.bin")), 1e-4);
  EXPECT_LE(MaxDifference(out, GoldenFloats("attn_out_f32.bin")), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(KvTypes, EngineGoldenTest,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16,
                                         DType::kInt8, DType::kFp8E4M3),
                         [](const auto& instance) {
                           return DTypeName(instance.param);
                         });

}  // namespace
}  // namespace paged_kv::llm
