// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/lengths_compare.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "benchmarks/tool/command.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/benchmarks/serving/serving_test_model.h"
#include "tests/benchmarks/test_files.h"
#include "tests/examples/llm/support/model_cache.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::tool {
namespace {

bool Never() { return false; }

LengthsCase Prompt(const LoadedModel& model, uint32_t tokens) {
  LengthsCase length;
  length.name = "prompt";
  for (uint32_t i = 0; i < tokens; ++i) {
    length.tokens.push_back(
        static_cast<TokenId>((i * 31 + 7) % model.config().vocab));
  }
  return length;
}

LengthsOptions F32Cache() {
  LengthsOptions options;
  options.cache.dtype = DType::kF32;
  options.cache.block_tokens = 16;
  return options;
}

TEST(LengthsCompareTest, RecomputingGivesTheTokensOfTheCache) {
  LoadedModel model = TinyModel();
  const auto row =
      CompareRecompute(model, Prompt(model, 37), 9, F32Cache(), Never);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->context, 37u);
  EXPECT_EQ(row->generated, 9u);
  EXPECT_EQ(row->equal_tokens, 9u);
  EXPECT_GT(row->cached_s, 0);
  EXPECT_GT(row->recomputed_s, 0);
}

TEST(LengthsCompareTest, NaiveAndPagedPrefillAgree) {
  attention::ThreadPool threads(2);
  const uint64_t seed = TestSeed(3);
  for (const uint32_t tokens : {1, 5, 64, 131}) {
    llm::ModelConfig config;
    config.heads = 6;
    config.kv_heads = 2;
    config.head_dim = 24;
    const auto row = ComparePrefill(config, tokens, 16, seed, threads);
    ASSERT_TRUE(row.ok()) << row.status();
    EXPECT_EQ(row->tokens, tokens);
    // Both round sums of up to 131 products of f32 near 1.
    EXPECT_LT(row->largest_difference, 2e-5) << tokens;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_GE(row->naive_bytes, uint64_t{6} * tokens * tokens * sizeof(float));
#endif
  }
}

TEST(LengthsCompareTest, ComparesAllThreeAndPlotsThem) {
  LoadedModel model = TinyModel();
  CompareOptions options;
  options.lengths = F32Cache();
  options.tokens = {8, 40, 100, 5000};  // the last is beyond the context
  options.generated = 2;
  options.requests = 7;
  const auto result = Compare(model, options, Never, [](const auto&) {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->recompute.size(), 3u);
  ASSERT_EQ(result->batching.size(), 3u);
  EXPECT_FALSE(result->interrupted);
  for (const ServeResult& served : result->batching) {
    ASSERT_EQ(served.requests.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(served.requests[i].output,
                result->batching[0].requests[i].output)
          << BatchingName(served.batching) << ", request " << i;
    }
  }
  const std::string text = CompareText(*result);
  for (const char* part : {"none", "static", "dynamic", "2 of 2", "flash"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << " in\n" << text;
  }
  const auto json = CompareJson(*result, 1);
  EXPECT_EQ(json["recompute"].size(), 3u);
  EXPECT_EQ(json["batching"][2]["batching"], "dynamic");
  EXPECT_GT(json["prefill"][0]["naive_s"], 0);

  const std::string path = TestFile("compare.svg");
  const absl::Status can = CheckCanPlot(path);
  if (!can.ok()) GTEST_SKIP() << can;
  const absl::Status drawn = WritePlot(ComparePlot(*result), path);
  ASSERT_TRUE(drawn.ok()) << drawn;
  std::ifstream file(path);
  const std::string svg(std::istreambuf_iterator<char>(file), {});
  for (const char* part : {"milliseconds per token", "dynamic", "naive"}) {
    EXPECT_TRUE(absl::StrContains(svg, part)) << part;
  }
}

TEST(LengthsCompareTest, IsAFlagOfLengths) {
  const auto path = llm::SharedFile("model/stories260K.bin");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const Invocation outcome = Invoke(
      {"lengths", "--compare", "--model=" + path.string(), "--lengths=20,70",
       "--compare_tokens=3", "--compare_requests=5", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["recompute"][1]["context"], 70);
  EXPECT_EQ(json["recompute"][1]["equal_tokens"], 3);
  EXPECT_EQ(json["prefill"].size(), 2u);
  EXPECT_EQ(json["batching"][1]["answered"], 5);
}

TEST(LengthsCompareTest, RefusesLengthsThatDoNotFitAndStopsWhenAsked) {
  LoadedModel model = TinyModel();
  CompareOptions options;
  options.lengths = F32Cache();
  options.tokens = {5000};
  EXPECT_TRUE(absl::IsInvalidArgument(
      Compare(model, options, Never, [](const auto&) {}).status()));
  options.tokens = {8};
  const auto stopped = Compare(
      model, options, [] { return true; }, [](const auto&) {});
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_TRUE(stopped->recompute.empty());
}

}  // namespace
}  // namespace paged_kv::tool
