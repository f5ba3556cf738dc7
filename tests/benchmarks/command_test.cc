// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tool as its users meet it: arguments in, text and exit code out.

#include "benchmarks/tool/command.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "benchmarks/tool/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

nlohmann::json InvokeJson(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const Invocation outcome = Invoke(arguments);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

constexpr char kTrace[] =
    R"({"timestamp":0,"input_length":1100,"output_length":20,"hash_ids":[5,6,7]}
{"timestamp":1000,"input_length":1500,"output_length":9,"hash_ids":[5,6,8]}
{"timestamp":2000,"input_length":90,"output_length":1,"hash_ids":[9]}
)";

std::string TraceFile() {
  const std::string path = TestFile("trace.jsonl");
  WriteAll(path, kTrace);
  return path;
}

TEST(CommandTest, HelpExplainsEveryCommandAndItsFlags) {
  const Invocation help = Invoke({"--help"});
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_EQ(help.err, "");
  for (const auto& command : MakeCommands()) {
    EXPECT_TRUE(absl::StrContains(help.out, command->name()));
    EXPECT_TRUE(absl::StrContains(help.out, command->summary()));
    const Invocation own = Invoke({command->name(), "--help"});
    EXPECT_EQ(own.code, kExitOk);
    EXPECT_TRUE(absl::StrContains(own.out, "--json")) << command->name();
    EXPECT_TRUE(absl::StrContains(own.out, "--seed")) << command->name();
    EXPECT_TRUE(absl::StrContains(own.out, "Example")) << command->name();
  }
  EXPECT_TRUE(absl::StrContains(Invoke({"--version"}).out, "pagedkv "));
}

struct BadUse {
  const char* what;
  std::vector<std::string> arguments;
  const char* message;
};

std::ostream& operator<<(std::ostream& os, const BadUse& bad) {
  return os << bad.what;
}

class BadUseTest : public testing::TestWithParam<BadUse> {};

TEST_P(BadUseTest, IsOneLineAndExitCodeTwo) {
  const Invocation outcome = Invoke(GetParam().arguments);
  EXPECT_EQ(outcome.code, kExitBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(absl::StartsWith(outcome.err, "pagedkv")) << outcome.err;
  EXPECT_TRUE(absl::StrContains(outcome.err, GetParam().message))
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadUseTest,
    testing::Values(
        BadUse{"no command", {}, "no command; use demo, "},
        BadUse{
            "unknown command", {"reply"}, "unknown command 'reply'; use demo"},
        BadUse{"unknown flag", {"replay", "--block_size=16"}, "--block_size"},
        BadUse{"zero blocks",
               {"replay", "--block_tokens=0"},
               "--block_tokens='0' is not a whole number from 1 to 4096"},
        BadUse{"huge blocks", {"replay", "--block_tokens=4097"}, "4096"},
        BadUse{"negative",
               {"replay", "--pool_blocks=-1"},
               "--pool_blocks='-1' is not a whole number"},
        BadUse{"overflow",
               {"replay", "--pool_blocks=99999999999999999999"},
               "--pool_blocks"},
        BadUse{"text", {"replay", "--pool_blocks=many"}, "'many'"},
        BadUse{"octal", {"replay", "--block_tokens=0x10"}, "'0x10'"},
        BadUse{"nan", {"replay", "--pool_fraction=nan"}, "--pool_fraction"},
        BadUse{"above one", {"replay", "--pool_fraction=1.5"}, "from 0 to 1"},
        BadUse{"both pools",
               {"replay", "--pool_fraction=0.5", "--pool_blocks=5"},
               "exclude each other"},
        BadUse{"policy",
               {"replay", "--policy=pages"},
               "unknown policy 'pages'; use one of paged, paged_noshare"},
        BadUse{"eviction", {"replay", "--eviction=mru"}, "use lru or slru"},
        BadUse{"concurrency",
               {"replay", "--concurrency=2"},
               "use serial or trace"},
        BadUse{"format",
               {"replay", "--format=xml"},
               "use auto, mooncake, bailian, azure or csv"},
        BadUse{"workload", {"replay", "--workload=chat"}, "azure_conv"},
        BadUse{"no requests", {"replay", "--requests=0"}, "--requests"},
        BadUse{"missing trace",
               {"replay", "--trace=no/such/trace"},
               "cannot open 'no/such/trace'"},
        BadUse{"missing value", {"replay", "--trace"}, "--trace"},
        BadUse{"plot suffix",
               {"replay", "--plot=a.pdf"},
               "end it in .svg or .png"},
        BadUse{"csv folder",
               {"replay", "--requests=1", "--csv=no/such/folder/a.csv"},
               "cannot write 'no/such/folder/a.csv'"},
        BadUse{"memory", {"fragmentation", "--memory_gib=0"}, "--memory_gib"}));

TEST(CommandTest, BadTraceLineNamesFileLineAndValue) {
  const std::string path = TestFile("bad.jsonl");
  WriteAll(path, std::string(kTrace) + "{\"timestamp\":3000,\n");
  const Invocation refused = Invoke({"replay", "--trace=" + path});
  EXPECT_EQ(refused.code, kExitBadInput);
  EXPECT_TRUE(absl::StrContains(refused.err, path + ":4: ")) << refused.err;
  const nlohmann::json skipped =
      InvokeJson({"replay", "--trace=" + path, "--skip_bad_lines"});
  EXPECT_EQ(skipped["skipped_lines"], 1);
  EXPECT_EQ(skipped["requests_total"], 3);
}

TEST(CommandTest, ReplayJsonHasEveryKey) {
  const std::string path = TraceFile();
  const nlohmann::json json = InvokeJson(
      {"replay", "--trace=" + path, "--block_tokens=64", "--seed=7"});
  EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(json["command"], "replay");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["trace"], path);
  EXPECT_EQ(json["trace_format"], "mooncake");
  EXPECT_EQ(json["trace_sha256"], Sha256Hex(kTrace));
  EXPECT_EQ(json["policy"], "paged");
  EXPECT_EQ(json["eviction"], "lru");
  EXPECT_EQ(json["concurrency"], "serial");
  EXPECT_EQ(json["block_tokens"], 64);
  EXPECT_EQ(json["unbounded"], true);
  EXPECT_EQ(json["requests_total"], 3);
  EXPECT_EQ(json["requests_completed"], 3);
  EXPECT_EQ(json["requests_never_fits"], 0);
  EXPECT_EQ(json["prompt_tokens"], 2690);
  // The second prompt shares 1,024 tokens with the first.
  EXPECT_EQ(json["hit_tokens"], 1024);
  EXPECT_DOUBLE_EQ(json["hit_rate"], 1024.0 / 2690);
  EXPECT_DOUBLE_EQ(json["belady_hit_rate"], 1024.0 / 2690);
  // 1,120, 1,509 and 91 tokens in 18, 24 and 2 blocks of 64.
  EXPECT_DOUBLE_EQ(json["final_tail_waste"], 96.0 / 2816);
  EXPECT_EQ(json["reserved_waste"], 0);
  EXPECT_EQ(json["peak_demand_blocks"], 24);
  EXPECT_EQ(json["preemptions"], 0);
  for (const char* cause : {"tail", "lookahead", "reserved", "duplicate"}) {
    EXPECT_TRUE(json["waste"].contains(cause));
  }
  const double waste = json["waste"]["tail"];
  const double live = json["effective_utilisation"];
  EXPECT_NEAR(waste + live, 1, 1e-12);
  EXPECT_FALSE(json.contains("mean_running"));
}

TEST(CommandTest, TraceConcurrencyAddsServingFigures) {
  const std::string path = TraceFile();
  const nlohmann::json json =
      InvokeJson({"replay", "--trace=" + path, "--concurrency=trace"});
  for (const char* key :
       {"mean_running", "peak_running", "simulated_seconds", "step_time_model",
        "first_token_seconds_p50", "first_token_seconds_p99"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["sensitivity"].size(), 5u);
  EXPECT_GT(json["simulated_seconds"], 2.0);
  const nlohmann::json plain = InvokeJson(
      {"replay", "--trace=" + path, "--concurrency=trace", "--no_sensitivity"});
  EXPECT_TRUE(plain["sensitivity"].empty());
}

TEST(CommandTest, RequestsThatNeverFitAreCountedAndTheRestGoesOn) {
  const std::string path = TraceFile();
  for (const char* policy : {"paged", "contiguous", "buddy", "cells",
                             "large_pages_64k", "oracle", "paged_noshare"}) {
    for (const char* concurrency : {"serial", "trace"}) {
      SCOPED_TRACE(std::string(policy) + " " + concurrency);
      const nlohmann::json json =
          InvokeJson({"replay", "--trace=" + path, "--pool_blocks=80",
                      "--no_sensitivity", std::string("--policy=") + policy,
                      std::string("--concurrency=") + concurrency});
      EXPECT_EQ(json["requests_total"], 3);
      // 1,280 slots; 1,024 of them are the largest power of two, and
      // contiguous would have to reserve 1,509.
      const int never = policy == std::string("contiguous") ? 3
                        : policy == std::string("buddy")    ? 2
                                                            : 1;
      EXPECT_EQ(json["requests_never_fits"], never);
      EXPECT_EQ(json["requests_completed"], 3 - never);
      EXPECT_EQ(json["trace_sha256"], Sha256Hex(kTrace));
    }
  }
}

TEST(CommandTest, GeneratedWorkloadRepeatsWithItsSeed) {
  const std::vector<std::string> base = {"replay", "--requests=50"};
  const auto run = [&](const std::string& seed) {
    std::vector<std::string> arguments = base;
    arguments.push_back("--seed=" + seed);
    nlohmann::json json = InvokeJson(arguments);
    EXPECT_TRUE(json["trace_sha256"].is_null());
    EXPECT_EQ(json["trace_format"], "generated");
    json.erase("seed");
    return json;
  };
  EXPECT_EQ(run("1"), run("1"));
  EXPECT_NE(run("1"), run("2"));
}

TEST(CommandTest, CsvHasARowPerRequest) {
  const std::string csv = TestFile("out.csv");
  const Invocation outcome =
      Invoke({"replay", "--trace=" + TraceFile(), "--csv=" + csv});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  std::istringstream lines(ReadAll(csv));
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(absl::StartsWith(rows[0], "request,arrival_s,prompt_tokens"));
  EXPECT_TRUE(absl::StartsWith(rows[2], "1,1.000000,1500,9,1,1024,1509,"))
      << rows[2];
}

TEST(CommandTest, PlotsAreWritten) {
  if (std::system("gnuplot --version >/dev/null") != 0) {
    GTEST_SKIP() << "no gnuplot";
  }
  for (const char* concurrency : {"serial", "trace"}) {
    const std::string svg = TestFile(std::string(concurrency) + ".svg");
    const Invocation outcome =
        Invoke({"replay", "--requests=60", "--plot=" + svg, "--no_sensitivity",
                std::string("--concurrency=") + concurrency});
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    const std::string text = ReadAll(svg);
    EXPECT_TRUE(absl::StrContains(text, "</svg>"));
    EXPECT_TRUE(absl::StrContains(text, "mooncake_conv, paged"));
    EXPECT_TRUE(absl::StrContains(text, concurrency == std::string("serial")
                                            ? "hit rate (% of prompt"
                                            : "simulated time (s)"));
  }
}

TEST(CommandTest, FragmentationComparesAllPolicies) {
  const std::string csv = TestFile("out.csv");
  const std::string svg = TestFile("out.svg");
  const nlohmann::json json =
      InvokeJson({"fragmentation", "--requests=40", "--workload=azure_conv",
                  "--memory_gib=1", "--csv=" + csv, "--plot=" + svg});
  EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(json["capacity_slots"], 18724);
  EXPECT_EQ(json["rows"].size(), 2 * 9 + 6u);
  double paged = 0, contiguous = 0;
  for (const nlohmann::json& row : json["rows"]) {
    double sum = row["effective_utilisation"];
    for (const double waste : row["waste"]) sum += waste;
    EXPECT_NEAR(sum, 1, 1e-9) << row;
    if (row["block_tokens"] == 16 && row["policy"] == "paged") {
      paged = row["mean_running"];
    }
    if (row["policy"] == "contiguous") contiguous = row["mean_running"];
  }
  EXPECT_GT(paged, 2 * contiguous);
  EXPECT_GT(contiguous, 0);
  const std::string rows = ReadAll(csv);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 25);
  EXPECT_TRUE(absl::StrContains(ReadAll(svg), "Waste by block size"));
}

TEST(CommandTest, ProgressGoesToStderrOnRequestOnly) {
  EXPECT_EQ(Invoke({"replay", "--requests=30"}).err, "");
  const Invocation shown = Invoke({"replay", "--requests=30", "--progress"});
  EXPECT_TRUE(absl::StrContains(shown.err, "replaying: 0 %")) << shown.err;
  // It is wiped in the end.
  EXPECT_EQ(shown.err.back(), '\r');
}

}  // namespace
}  // namespace paged_kv::tool
