// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/serve_request.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/serving/serving_test_model.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

TEST(ServeRequestTest, ReadsLinesAndSortsThemByArrival) {
  const LoadedModel model = TinyModel();
  ServeRequest defaults;
  defaults.max_tokens = 9;
  const ServeRequests read = ParseServeRequests(
      "{\"tokens\": [1, 2], \"arrival_s\": 2.5, \"id\": \"late\"}\n"
      "\n"
      "{\"tokens\": [96], \"max_tokens\": 3, \"temperature\": 0.5,"
      " \"top_k\": 4, \"top_p\": 0.25, \"seed\": 11, \"ignore_end\": true}\r\n",
      model, defaults);
  ASSERT_TRUE(read.bad_lines.empty()) << read.bad_lines[0].reason;
  ASSERT_EQ(read.requests.size(), 2u);
  const ServeRequest& first = read.requests[0];
  EXPECT_EQ(first.id, "3");
  EXPECT_EQ(first.prompt.tokens, std::vector<TokenId>{96});
  EXPECT_EQ(first.max_tokens, 3u);
  EXPECT_EQ(first.sampling.temperature, 0.5F);
  EXPECT_EQ(first.sampling.top_k, 4u);
  EXPECT_EQ(first.sampling.top_p, 0.25F);
  EXPECT_EQ(first.sampling.seed, 11u);
  EXPECT_TRUE(first.ignore_end);
  EXPECT_EQ(read.requests[1].id, "late");
  EXPECT_EQ(read.requests[1].arrival_s, 2.5);
  EXPECT_EQ(read.requests[1].max_tokens, 9u);
}

TEST(ServeRequestTest, ReportsBadLinesAndReadsTheRest) {
  const LoadedModel model = TinyModel();
  const std::vector<std::string> bad = {
      "not json",
      "{\"tokens\": [1, 2]",
      "[1, 2]",
      "{}",
      "{\"tokens\": []}",
      "{\"tokens\": [97]}",
      "{\"tokens\": [-1]}",
      "{\"tokens\": [1.5]}",
      "{\"tokens\": [1], \"prompt\": \"x\"}",
      "{\"prompt\": \"this model has no vocabulary\"}",
      "{\"tokens\": [1], \"max_tokens\": 0}",
      "{\"tokens\": [1], \"max_tokens\": -4}",
      "{\"tokens\": [1], \"arrival_s\": -1}",
      "{\"tokens\": [1], \"arrival_s\": \"soon\"}",
      "{\"tokens\": [1], \"temperature\": -0.5}",
      "{\"tokens\": [1], \"top_p\": 0}",
      "{\"tokens\": [1], \"top_p\": 1.5}",
      "{\"tokens\": [1], \"id\": [3]}",
      "{\"tokens\": [1], \"chat\": 1}",
      "{\"tokens\": [1], \"max_token\": 4}",
      std::string(100000, '['),
      std::string("{\"tokens\": [\"\xFF\"]}"),
      "{\"tokens\": [1], \"temperature\": 1e999}",
      "{\"prompt\": \"\\ud800\"}",
      "{\"tokens\": [1]} {\"tokens\": [1]}",
  };
  for (const std::string& line : bad) {
    const ServeRequests read = ParseServeRequests(
        "{\"tokens\": [5]}\n" + line + "\n{\"tokens\": [6]}", model, {});
    ASSERT_EQ(read.bad_lines.size(), 1u) << line.substr(0, 80);
    EXPECT_EQ(read.bad_lines[0].line, 2u);
    EXPECT_FALSE(read.bad_lines[0].reason.empty());
    EXPECT_EQ(read.requests.size(), 2u) << line.substr(0, 80);
  }
}

TEST(ServeRequestTest, SaysWhatIsWrongWithALine) {
  const LoadedModel model = TinyModel();
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{\"tokens\": 1, }", "not JSON at byte 15: "},
      {"{\"prompt\": \"\xFF\"}", "not JSON at byte 13: "},
      {"{\"tokens\": [1], \"top_p\": 1e999}", "a number is out of range: "},
      {"[1, 2]", "no JSON object: "},
  };
  for (const auto& [line, words] : bad) {
    const ServeRequests read = ParseServeRequests(line, model, {});
    ASSERT_EQ(read.bad_lines.size(), 1u) << line;
    EXPECT_EQ(read.bad_lines[0].reason.substr(0, words.size()), words);
  }
}

TEST(ServeRequestTest, RefusesPromptsLongerThanTheContext) {
  const LoadedModel model = TinyModel();
  std::string tokens = "1";
  for (int i = 1; i < 128; ++i) tokens += ", 1";
  const ServeRequests read =
      ParseServeRequests("{\"tokens\": [" + tokens + "]}", model, {});
  ASSERT_EQ(read.bad_lines.size(), 1u);
  EXPECT_TRUE(absl::StrContains(read.bad_lines[0].reason, "128"))
      << read.bad_lines[0].reason;
}

TEST(ServeRequestTest, WorkloadsFitAndShareTheirPrefix) {
  const LoadedModel model = TinyModel();
  ServeWorkload workload;
  workload.trace.requests = 20;
  workload.shared_prefix = 33;
  workload.max_prompt_tokens = 30;
  workload.max_output_tokens = 10;
  const auto made = MakeServeRequests(workload, model, {});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->requests.size(), 20u);
  const auto& first = made->requests[0].prompt.tokens;
  for (const ServeRequest& request : made->requests) {
    const auto& tokens = request.prompt.tokens;
    EXPECT_GT(tokens.size(), 33u);
    EXPECT_LE(tokens.size(), 63u);
    EXPECT_TRUE(std::equal(first.begin(), first.begin() + 33, tokens.begin()));
    EXPECT_GE(request.max_tokens, 1u);
    EXPECT_LE(request.max_tokens, 10u);
    EXPECT_EQ(request.arrival_s, 0);
  }
  workload.max_prompt_tokens = 90;
  EXPECT_TRUE(
      absl::IsInvalidArgument(MakeServeRequests(workload, model, {}).status()));
}

TEST(ServeRequestTest, WorkloadsTakeTheLengthsOfATrace) {
  const LoadedModel model = TinyModel();
  const std::string path = TestFile("azure.csv");
  WriteAll(path,
           "TIMESTAMP,ContextTokens,GeneratedTokens\n"
           "2023-11-16 18:15:46.0000000,374,44\n"
           "2023-11-16 18:15:50.0000000,20,9\n"
           "2023-11-16 18:15:54.0000000,7,200\n"
           "2023-11-16 18:15:55.0000000,8,1\n");
  ServeWorkload workload;
  workload.trace_path = path;
  workload.trace.requests = 3;
  workload.max_prompt_tokens = 30;
  workload.max_output_tokens = 50;
  workload.timed = true;
  workload.trace.requests_per_second = 1.5;
  const auto made = MakeServeRequests(workload, model, {});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->trace_sha256.size(), 64u);
  ASSERT_EQ(made->requests.size(), 3u);
  const size_t prompts[] = {30, 20, 7};
  const uint32_t outputs[] = {44, 9, 50};
  // 3 requests at 1.5 per second, evenly as in the file.
  const double arrivals[] = {0, 1, 2};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(made->requests[i].prompt.tokens.size(), prompts[i]);
    EXPECT_EQ(made->requests[i].max_tokens, outputs[i]);
    EXPECT_NEAR(made->requests[i].arrival_s, arrivals[i], 1e-6);
  }
  workload.trace_path = path + ".not_there";
  EXPECT_TRUE(
      absl::IsNotFound(MakeServeRequests(workload, model, {}).status()));
}

}  // namespace
}  // namespace paged_kv::tool
