// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/model_demo.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

// Without a fetched model: its folder is one that is not there.
class ModelDemoTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CACHE_HOME", "no_such_folder", 1); }
};

TEST_F(ModelDemoTest, RandomWeightsShareTheSystemPromptToo) {
  const auto demo = RunModelDemo(1, 1, [] { return false; });
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_FALSE(demo->real);
  EXPECT_GE(demo->shared_tokens, 64u);
  // All but the first wait for its prefix, which is four whole blocks.
  EXPECT_EQ(demo->result.stats.cache.hit_tokens,
            64 * (demo->prompts.size() - 1));
  for (const GeneratedPrompt& prompt : demo->result.prompts) {
    EXPECT_EQ(prompt.samples[0].tokens.size(), 40u);
  }
  EXPECT_TRUE(absl::StrContains(ModelDemoText(*demo), "came from the cache"));
  EXPECT_EQ(ModelDemoJson(*demo)["answers"].size(), demo->prompts.size());
  EXPECT_EQ(ModelDemoJson(*demo)["random_weights"], true);
}

TEST_F(ModelDemoTest, AnInterruptEndsIt) {
  const auto demo = RunModelDemo(1, 1, [] { return true; });
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_TRUE(demo->result.interrupted);
  ModelDemoText(*demo);
}

TEST_F(ModelDemoTest, FindsTheFirstFetchedModel) {
  EXPECT_EQ(FetchedModelPath(), "");
  const char* work = std::getenv("TEST_TMPDIR");
  const auto folder = std::filesystem::path(work != nullptr ? work : ".");
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  std::filesystem::remove_all(folder / "pagedkv");
  std::filesystem::create_directories(folder / "pagedkv" / "b.gguf");
  std::filesystem::create_directories(folder / "pagedkv" / "a.gguf");
  std::filesystem::create_directories(folder / "pagedkv" / "0.txt");
  EXPECT_EQ(FetchedModelPath(), (folder / "pagedkv" / "a.gguf").string());
}

}  // namespace
}  // namespace paged_kv::tool
