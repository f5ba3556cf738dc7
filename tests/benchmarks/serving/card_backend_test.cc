// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// --backend=card as its users meet it. A process of its own: XRT reads where
// the emulated card is once.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "benchmarks/tool/command.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/examples/llm/support/model_cache.h"

namespace paged_kv::tool {
namespace {

class CardBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = llm::SharedFile("model/stories260K.bin").string();
    if (!std::filesystem::exists(model_)) {
      GTEST_SKIP() << model_ << " is not there";
    }
  }

  Invocation OnCard(const std::string& command,
                    std::vector<std::string> more) const {
    more.insert(more.begin(), {command, "--model=" + model_, "--threads=1",
                               "--backend=card"});
    return Invoke(more);
  }

  std::string model_;
};

TEST_F(CardBackendTest, GenerateTellsTheGoldenStory) {
  std::ifstream file(llm::SharedFile("golden/greedy_text.txt"));
  if (!file) GTEST_SKIP() << "golden/greedy_text.txt is not there";
  std::ostringstream golden;
  golden << file.rdbuf();
  const Invocation outcome =
      OnCard("generate", {"--prompt=", "--max_tokens=255", "--stats"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_TRUE(absl::StartsWith(outcome.out, golden.str() + "\n"))
      << outcome.out;
  EXPECT_TRUE(absl::StrContains(outcome.out, "255 decode steps"))
      << outcome.out;
  EXPECT_TRUE(absl::StrContains(outcome.out, " 0 layers that the card failed"))
      << outcome.out;
}

TEST_F(CardBackendTest, ServeCountsEachRunAlone) {
  const Invocation outcome = OnCard(
      "serve", {"--requests=4", "--max_prompt_tokens=40",
                "--max_output_tokens=20", "--batching=none,dynamic", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto runs = nlohmann::json::parse(outcome.out)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  for (const auto& run : runs) {
    const auto& card = run["stats"]["card"];
    EXPECT_GT(card["decode_steps"], 0);
    EXPECT_EQ(card["failed_layers"], 0);
    EXPECT_EQ(card["decode_steps"].get<int>() + card["host_steps"].get<int>(),
              run["stats"]["steps"]);
  }
}

TEST_F(CardBackendTest, ServePreemptsBySwapOnTheCard) {
  const std::vector<std::string> load = {
      "--requests=12",           "--batch=6",          "--max_prompt_tokens=16",
      "--max_output_tokens=200", "--batching=dynamic", "--json"};
  std::vector<std::string> crowded = load;
  crowded.insert(crowded.end(), {"--pool_blocks=24", "--preempt=swap"});
  const Invocation roomy = OnCard("serve", load);
  const Invocation swapped = OnCard("serve", crowded);
  ASSERT_EQ(roomy.code, kExitOk) << roomy.err;
  ASSERT_EQ(swapped.code, kExitOk) << swapped.err;
  const auto run = nlohmann::json::parse(swapped.out)["runs"][0];
  EXPECT_GT(run["stats"]["swap_outs"], 0);
  EXPECT_GT(run["stats"]["card"]["decode_steps"], 0);
  EXPECT_EQ(run["stats"]["card"]["failed_layers"], 0);
  EXPECT_EQ(
      run["stats"]["output_tokens"],
      nlohmann::json::parse(roomy.out)["runs"][0]["stats"]["output_tokens"]);
}

TEST_F(CardBackendTest, LengthsMeasuresOnTheCard) {
  const Invocation outcome =
      OnCard("lengths", {"--repeats=", "--lengths=50", "--batch=2",
                         "--output_tokens=9", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto card = nlohmann::json::parse(outcome.out)["card"];
  EXPECT_EQ(card["decode_steps"], 8);
  EXPECT_EQ(card["host_steps"], 2);
  EXPECT_EQ(card["pages_uploaded"], 6);  // 3 full ones of each
}

TEST_F(CardBackendTest, RefusesWhatTheCardDoesNotTake) {
  const Invocation f32 =
      OnCard("generate", {"--prompt=Once", "--kv_dtype=f32"});
  EXPECT_EQ(f32.code, kExitBadInput);
  EXPECT_NE(f32.err, "");
  const Invocation board =
      OnCard("generate", {"--prompt=Once", "--board=none.json"});
  EXPECT_EQ(board.code, kExitBadInput);
  EXPECT_TRUE(absl::StrContains(board.err, "none.json")) << board.err;
}

}  // namespace
}  // namespace paged_kv::tool
