// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// `pagedkv generate`, `serve` and `lengths` as their users meet them.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/command.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

nlohmann::json JsonOf(const Invocation& outcome) {
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

// A file of the test's own folder.
std::string WriteFile(const std::string& name, const std::string& contents) {
  const std::string path = TestFile(name);
  WriteAll(path, contents);
  return path;
}

class ModelCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PAGED_KV_SHARED_DIR");
    if (folder != nullptr) shared_ = folder;
    model_ = (shared_ / "model/stories260K.bin").string();
    if (folder == nullptr || !std::filesystem::exists(model_)) {
      GTEST_SKIP() << "model/stories260K.bin of the shared folder is not there";
    }
  }

  Invocation Model(const std::string& command,
                   std::vector<std::string> more) const {
    more.insert(more.begin(), {command, "--model=" + model_, "--threads=1"});
    return Invoke(more);
  }

  std::filesystem::path shared_;
  std::string model_;
};

TEST_F(ModelCommandsTest, GenerateTellsTheGoldenStory) {
  std::ifstream file(shared_ / "golden/greedy_text.txt");
  if (!file) GTEST_SKIP() << "golden/greedy_text.txt is not there";
  std::ostringstream golden;
  golden << file.rdbuf();
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const Invocation outcome = Model(
        "generate",
        {"--prompt=", "--max_tokens=255", absl::StrCat("--kv_dtype=", dtype)});
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_EQ(outcome.out, golden.str() + "\n") << dtype;
  }
}

TEST_F(ModelCommandsTest, GenerateServesPromptsAndSamplesTogether) {
  const std::string prompts =
      WriteFile("prompts.txt", "Once upon a time\n\nThe dog\r\n");
  const auto run = [&](const char* batch) {
    return JsonOf(Model(
        "generate", {"--prompts_file=" + prompts, "--prompt=Once upon a time",
                     "--n=2", "--temperature=0.9", "--seed=5", "--json",
                     "--max_tokens=12", absl::StrCat("--batch=", batch)}));
  };
  const nlohmann::json together = run("16");
  ASSERT_EQ(together["prompts"].size(), 3u);
  EXPECT_EQ(together["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(together["prompts"][1]["samples"],
            together["prompts"][0]["samples"]);
  EXPECT_NE(together["prompts"][0]["samples"][0]["tokens"],
            together["prompts"][0]["samples"][1]["tokens"]);
  EXPECT_GT(together["stats"]["output_tokens"], 0);
  const nlohmann::json narrow = run("2");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(narrow["prompts"][i]["samples"],
              together["prompts"][i]["samples"]);
  }
}

// The golden story repeats little; a text that quotes itself shows what drafts
// are for.
TEST_F(ModelCommandsTest, SpeculationChangesTheStepsAndNothingElse) {
  const std::string repeated =
      "--prompt=The dog saw the cat. The dog saw the cat. The dog saw";
  for (const std::string& prompt : {std::string("--prompt="), repeated}) {
    const auto run = [&](std::vector<std::string> more) {
      more.insert(more.end(),
                  {prompt, "--max_tokens=120", "--json", "--kv_dtype=f32"});
      return JsonOf(Model("generate", more));
    };
    const nlohmann::json plain = run({});
    EXPECT_EQ(plain["stats"]["speculation"]["draft_tokens"], 0);
    for (const char* flag : {"--speculate", "--speculate=1", "--speculate=9"}) {
      const nlohmann::json drafting = run({flag});
      EXPECT_EQ(drafting["prompts"][0]["samples"],
                plain["prompts"][0]["samples"])
          << flag;
      const auto& stats = drafting["stats"]["speculation"];
      EXPECT_GT(stats["accepted_tokens"], 0) << flag;
      EXPECT_GE(stats["draft_tokens"], stats["accepted_tokens"]);
      EXPECT_LT(drafting["stats"]["steps"], plain["stats"]["steps"]) << flag;
    }
  }
  const Invocation shown = Model(
      "generate", {repeated, "--max_tokens=60", "--speculate", "--stats"});
  EXPECT_TRUE(absl::StrContains(shown.out, "draft tokens right")) << shown.out;
}

TEST_F(ModelCommandsTest, BeamsComeBestFirst) {
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--prompt=Once upon a time", "--prompt=The dog",
                             "--max_tokens=20", "--json", "--kv_dtype=f32"});
    return JsonOf(Model("generate", more));
  };
  const nlohmann::json greedy = run({});
  const nlohmann::json one = run({"--beam=1"});
  const nlohmann::json four = run({"--beam=4", "--step_tokens=3"});
  for (size_t i = 0; i < 2; ++i) {
    const auto& samples = four["prompts"][i]["samples"];
    ASSERT_EQ(samples.size(), 4u);
    for (size_t b = 1; b < 4; ++b) {
      EXPECT_GE(samples[b - 1]["score"], samples[b]["score"]);
      EXPECT_NE(samples[b - 1]["tokens"], samples[b]["tokens"]);
    }
    EXPECT_EQ(one["prompts"][i]["samples"][0]["tokens"],
              greedy["prompts"][i]["samples"][0]["tokens"]);
    // Up to rounding, where both found the same.
    EXPECT_GE(samples[0]["score"].get<double>() + 1e-4,
              one["prompts"][i]["samples"][0]["score"].get<double>());
  }
  EXPECT_GT(four["stats"]["beam_forks"], 0);
  EXPECT_GT(four["stats"]["cache"]["blocks_copied"], 0);
  EXPECT_EQ(four["stats"]["output_tokens"], 2 * 4 * 20);
}

TEST_F(ModelCommandsTest, TraceShowsHowTheCacheGrows) {
  const Invocation outcome =
      Model("generate", {"--prompt=Once upon a time", "--max_tokens=3",
                         "--block_tokens=4", "--trace_cache"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_TRUE(absl::StrContains(outcome.out, "5 layers x 4 KV heads"));
  EXPECT_TRUE(absl::StrContains(outcome.out, "prefill position 0..4 -> "))
      << outcome.out;
  EXPECT_TRUE(absl::StrContains(outcome.out, "step 3: 1 token computed"))
      << outcome.out;
  EXPECT_TRUE(absl::StrContains(outcome.out, "request 1.1 decode"))
      << outcome.out;
  EXPECT_TRUE(absl::StrContains(outcome.out, "-> (ended)")) << outcome.out;
}

TEST_F(ModelCommandsTest, ServeAnswersGoodLinesAndReportsBadOnes) {
  const std::string requests =
      WriteFile("requests.jsonl",
                "{\"prompt\": \"Once\", \"max_tokens\": 6, \"id\": \"a\"}\n"
                "oops\n{\"prompt\": \"The\", \"max_tokens\": 4}\n");
  const Invocation outcome = Model(
      "serve",
      {"--requests_file=" + requests, "--json", "--batching=none,dynamic"});
  EXPECT_EQ(outcome.code, kExitBadInput);
  EXPECT_TRUE(absl::StrContains(outcome.err, "line 2")) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_EQ(report["runs"].size(), 2u);
  EXPECT_EQ(report["bad_lines"][0]["line"], 2);
  for (const auto& run : report["runs"]) {
    EXPECT_EQ(run["answered"], 2);
    EXPECT_EQ(run["requests"][0]["id"], "a");
    EXPECT_EQ(run["requests"][0]["tokens"].size(), 6u);
    EXPECT_EQ(run["requests"][1]["tokens"].size(), 4u);
  }
  EXPECT_EQ(report["runs"][0]["requests"][0]["tokens"],
            report["runs"][1]["requests"][0]["tokens"]);
}

TEST_F(ModelCommandsTest, LengthsHasARowPerLengthAndBatch) {
  const nlohmann::json report =
      JsonOf(Model("lengths", {"--repeats=1", "--lengths=8,16,40,100,200,600",
                               "--batch=1,3", "--output_tokens=3", "--json"}));
  // 600 tokens do not fit the context of 512.
  ASSERT_EQ(report["rows"].size(), 12u);
  for (const auto& row : report["rows"]) {
    EXPECT_GT(row["prefill"]["wall_s"], 0);
    EXPECT_GT(row["decode_step_s"], 0);
    EXPECT_EQ(row["kv_bytes"].get<uint64_t>(),
              640 * row["batch"].get<uint64_t>() *
                  (row["prompt_tokens"].get<uint64_t>() + 3));
  }
  ASSERT_EQ(report["fits"].size(), 2u);
  EXPECT_EQ(report["fits"][0]["prefill_s"]["coefficients"].size(), 3u);
  EXPECT_EQ(report["fits"][1]["decode_step_s"]["coefficients"].size(), 2u);
}

TEST_F(ModelCommandsTest, LengthsComparesTheEngineWithTheKernelAlone) {
  const std::vector<std::string> arguments = {"--repeats=", "--lengths=40,90",
                                              "--batch=2", "--output_tokens=4"};
  std::vector<std::string> with = arguments;
  with.push_back("--kernel");
  const Invocation shown = Model("lengths", with);
  EXPECT_TRUE(absl::StrContains(shown.out, "engine of kernel")) << shown.out;
  with.push_back("--json");
  const nlohmann::json report = JsonOf(Model("lengths", with));
  ASSERT_EQ(report["rows"].size(), 2u);
  for (const auto& row : report["rows"]) {
    const auto& attention = row["attention"];
    const double engine = attention["engine_bytes_per_s"];
    const double alone = attention["kernel_bytes_per_s"];
    EXPECT_GT(engine, 0);
    EXPECT_GT(alone, 0);
    EXPECT_NEAR(attention["engine_of_kernel"], engine / alone, 1e-9);
    // The kernel is a part of what the engine calls attention: 3 steps.
    const double bytes = 640.0 * 2 * (row["prompt_tokens"].get<double>() + 2);
    EXPECT_LE(bytes / engine, row["decode"]["attention_s"].get<double>());
  }
  with = arguments;
  with.push_back("--json");
  const nlohmann::json plain = JsonOf(Model("lengths", with));
  EXPECT_TRUE(plain["rows"][0]["attention"].is_null());
}

TEST_F(ModelCommandsTest, ServeComparesSharingAndBatching) {
  const nlohmann::json report = JsonOf(Model(
      "serve", {"--requests=6", "--shared_prefix=64", "--max_prompt_tokens=8",
                "--max_output_tokens=4", "--batching=static,dynamic",
                "--prefix_sharing=on,off", "--json"}));
  ASSERT_EQ(report["runs"].size(), 4u);
  EXPECT_EQ(report["runs"][0]["prefix_sharing"], true);
  EXPECT_EQ(report["runs"][1]["prefix_sharing"], false);
  EXPECT_GT(report["comparison"]["first_token_gain"], 0);
  EXPECT_GT(report["comparison"]["dynamic_over_static"], 0);
  EXPECT_TRUE(report["comparison"]["dynamic_over_none"].is_null());
  uint64_t prompts = 0;
  for (const auto& request : report["runs"][0]["requests"]) {
    prompts += request["prompt_tokens"].get<uint64_t>();
  }
  EXPECT_EQ(report["ideal_prefill_tokens"], prompts - 5 * 64);
  EXPECT_EQ(report["runs"][0]["prefill_tokens"], prompts - 5 * 64);
  EXPECT_EQ(report["runs"][1]["prefill_tokens"], prompts);
}

TEST_F(ModelCommandsTest, BadInputIsOneLineAndExitCodeTwo) {
  const std::string truncated = WriteFile("truncated.bin", "GGUF");
  const std::string empty = WriteFile("empty.jsonl", "\n");
  const std::string long_prompt(4000, 'x');
  const std::vector<std::vector<std::string>> bad = {
      {"generate", "--model=/no/such/file", "--prompt=x"},
      {"generate", "--model=" + truncated, "--prompt=x"},
      {"generate", "--model=" + model_},
      {"generate", "--model=" + model_, "--prompt=\xFF\xFE"},
      {"generate", "--model=" + model_, "--prompt=" + long_prompt},
      {"generate", "--model=" + model_, "--prompt=x", "--chat"},
      {"generate", "--model=" + model_, "--prompt=x", "--system=y"},
      {"generate", "--model=" + model_, "--prompt=x", "--temperature=-1"},
      {"generate", "--model=" + model_, "--prompt=x", "--top_p=0"},
      {"generate", "--model=" + model_, "--prompt=x", "--speculate=65"},
      {"generate", "--model=" + model_, "--prompt=x", "--beam=2", "--n=2"},
      {"generate", "--model=" + model_, "--prompt=x", "--beam=2",
       "--temperature=1"},
      {"generate", "--model=" + model_, "--prompt=x", "--beam=2",
       "--speculate"},
      {"generate", "--model=" + model_, "--prompt=x", "--beam=2",
       "--trace_cache"},
      {"serve", "--model=" + model_, "--speculate=some"},
      {"serve", "--model=" + model_, "--preempt=never"},
      {"generate", "--model=" + model_, "--prompt=x", "--kv_dtype=f8"},
      {"generate", "--model=" + model_, "--prompt=x", "--pool_blocks=1",
       "--max_tokens=100"},
      {"serve", "--model=" + model_, "--requests_file=" + empty},
      {"serve", "--model=" + model_, "--batching=some"},
      {"serve", "--model=" + model_, "--prefix_sharing=on,maybe"},
      {"serve", "--model=" + model_, "--trace=/no/such/file"},
      {"serve", "--model=" + model_, "--trace=x", "--requests_file=" + empty},
      {"lengths", "--model=" + model_, "--kernel", "--backend=card"},
      {"serve", "--model=" + model_, "--shared_prefix=600"},
      {"lengths", "--model=" + model_, "--layers=2"},
      {"lengths", "--model=" + model_, "--shape=qwen2.5-7b"},
      {"lengths", "--shape=gpt-2"},
      {"lengths", "--model=" + model_, "--lengths=9000", "--repeats="},
      {"lengths", "--model=" + model_, "--batch=0"},
  };
  for (const std::vector<std::string>& arguments : bad) {
    const Invocation outcome = Invoke(arguments);
    const std::string shown = arguments[0] + " " + arguments.back();
    EXPECT_EQ(outcome.code, kExitBadInput) << shown << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << shown << "\n"
        << outcome.err;
    EXPECT_EQ(outcome.out, "") << shown;
  }
}

TEST_F(ModelCommandsTest, ErrorsSayWhatToDo) {
  const std::string story = "--model=" + model_;
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad = {
      {{"generate", story, "--prompt=x", "--pool_blocks=1", "--max_tokens=100"},
       "raise --pool_blocks or lower --max_tokens"},
      {{"generate", story, "--prompt=x", "--temperature=nan"},
       "nan is not a finite number"},
      {{"generate", story, "--prompt=x", "--temperature=inf"},
       "inf is not a finite number"},
      {{"serve", story, "--requests=2"}, "lower --shared_prefix, "},
      {{"lengths", story, "--lengths=", "--repeats="},
       "give --repeats or --lengths"},
      {{"lengths", "--shape=qwen2.5-7b", "--layers=99"}, "qwen2.5-7b has 28"},
      {{"lengths", story, "--lengths=4", "--plot=/no/such/folder/x.svg"},
       "no folder '/no/such/folder'"},
  };
  for (const auto& [arguments, words] : bad) {
    const Invocation outcome = Invoke(arguments);
    EXPECT_EQ(outcome.code, kExitBadInput) << words;
    EXPECT_TRUE(absl::StrContains(outcome.err, words)) << outcome.err;
  }
}

}  // namespace
}  // namespace paged_kv::tool
