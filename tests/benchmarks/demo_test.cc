// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/demo_model.h"
#include "benchmarks/tool/demo_serving.h"
#include "benchmarks/tool/progress.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

DemoServingOptions Small() {
  DemoServingOptions options;
  options.requests = 5;
  options.common_tokens = 70;
  options.own_tokens = 20;
  options.output_tokens = 18;
  options.layers = 2;
  return options;
}

DemoServingResult Serve(const DemoServingOptions& options) {
  Progress progress(nullptr);
  absl::StatusOr<DemoServingResult> result = ServeDemoBatch(options, progress);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(DemoServingTest, SharingChangesTheWorkAndNotTheAnswers) {
  DemoServingOptions options = Small();
  const DemoServingResult shared = Serve(options);
  options.share = false;
  const DemoServingResult alone = Serve(options);

  EXPECT_EQ(shared.answers, alone.answers);
  for (const std::vector<TokenId>& answer : shared.answers) {
    EXPECT_EQ(answer.size(), options.output_tokens);
  }
  EXPECT_EQ(alone.computed_prompt_tokens, alone.prompt_tokens);
  // Four requests find the four whole blocks of the common tokens.
  EXPECT_EQ(shared.computed_prompt_tokens, shared.prompt_tokens - 4 * 64);
  EXPECT_LE(shared.peak_blocks, alone.peak_blocks - 4 * 4);
}

TEST(DemoServingTest, AttentionIsRight) {
  const DemoServingResult result = Serve(Small());
  EXPECT_GE(result.checked_steps, 2u);
  EXPECT_GT(result.max_attention_error, 0);
  EXPECT_LT(result.max_attention_error, 1e-4);  // tiles lose 2^-16
}

TEST(DemoServingTest, AnswersDependOnThePromptAndRepeat) {
  DemoServingOptions options = Small();
  const DemoServingResult first = Serve(options);
  EXPECT_EQ(first.answers, Serve(options).answers);
  EXPECT_NE(first.answers[0], first.answers[1]);
  options.threads = 1;
  EXPECT_EQ(first.answers, Serve(options).answers);
  options.seed = 2;
  EXPECT_NE(first.answers, Serve(options).answers);
}

TEST(DemoModelTest, RowsDependOnEverythingTheyShould) {
  const DemoModel model(1);
  using Projection = DemoModel::Projection;
  const auto row = [&model](Projection projection, TokenId token,
                            uint32_t position, uint32_t layer) {
    std::vector<float> values(DemoModel::kKvHeads * DemoModel::kHeadDim);
    model.Project(projection, token, position, layer, absl::MakeSpan(values));
    return values;
  };
  const std::vector<float> base = row(Projection::kKey, 1, 2, 0);
  EXPECT_EQ(base, row(Projection::kKey, 1, 2, 0));
  EXPECT_NE(base, row(Projection::kValue, 1, 2, 0));
  EXPECT_NE(base, row(Projection::kKey, 2, 2, 0));
  EXPECT_NE(base, row(Projection::kKey, 1, 3, 0));
  EXPECT_NE(base, row(Projection::kKey, 1, 2, 1));
  for (const float value : base) {
    EXPECT_GE(value, -1);
    EXPECT_LT(value, 1);
  }
}

// The code, and in *out what was printed, or the error.
int RunDemo(const std::vector<std::string>& arguments, std::string* out) {
  const Invocation run = Invoke(arguments);
  *out = run.code == kExitOk ? run.out : run.err;
  return run.code;
}

TEST(DemoCommandTest, EndsInATableAndTwoPlots) {
  if (std::system("gnuplot --version >/dev/null") != 0) {
    GTEST_SKIP() << "no gnuplot";
  }
  const std::string folder = TestFile("plots");
  std::filesystem::create_directory(folder);
  std::string out;
  ASSERT_EQ(RunDemo({"demo", "--requests=60", "--batch=3", "--output_tokens=4",
                     "--no_model", "--out=" + folder},
                    &out),
            kExitOk)
      << out;
  EXPECT_TRUE(absl::StrContains(out, "are the same in both"));
  EXPECT_TRUE(absl::StrContains(out, "4. A card (a model of an Alveo U280, "));
  // Says so where it could not be driven as a card is.
  EXPECT_NE(absl::StrContains(out, "driven through XRT"),
            absl::StrContains(out, "Without XRT, so simulated"));
  EXPECT_TRUE(absl::StrContains(out, "In short:"));
  EXPECT_TRUE(absl::StrContains(ReadAll(folder + "/pagedkv_demo.svg"),
                                "A batch with a common prefix"));
  EXPECT_EQ(ReadAll(folder + "/pagedkv_demo.png").substr(1, 3), "PNG");
}

TEST(DemoCommandTest, JsonOnly) {
  std::string out;
  ASSERT_EQ(RunDemo({"demo", "--requests=30", "--batch=2", "--output_tokens=3",
                     "--no_plot", "--no_model", "--json", "--seed=3"},
                    &out),
            kExitOk)
      << out;
  const nlohmann::json json = nlohmann::json::parse(out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << out;
  EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(json["command"], "demo");
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["policies"].size(), 8u);
  EXPECT_EQ(json["serving"]["same_answers"], true);
  EXPECT_EQ(json["card"]["board"], "u280");
  EXPECT_LE(json["card"]["max_error"], 2e-3);
  EXPECT_GE(json["card"]["bound_ratio"], 1.0);
}

TEST(DemoCommandTest, FolderMustExist) {
  std::string out;
  EXPECT_EQ(RunDemo({"demo", "--out=no/such/folder"}, &out), kExitBadInput);
  EXPECT_TRUE(absl::StrContains(out, "'no/such/folder' is not a folder"));
}

}  // namespace
}  // namespace paged_kv::tool
