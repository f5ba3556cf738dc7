// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/stress_run.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "paged_kv/op_log.h"
#include "paged_kv/op_log_framing.h"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/support/lockstep_replay.h"

namespace paged_kv::tool {
namespace {

Invocation Stress(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "stress");
  return Invoke(arguments);
}

std::string TempFile(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder != nullptr ? folder : ".") + "/" + name;
}

TEST(CommandStressTest, AgreesWithTheModelAndSucceedsMostly) {
  const Invocation run = Stress({"--ops=20000", "--json"});
  EXPECT_EQ(run.code, kExitOk) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(json["seed"], 1);
  EXPECT_EQ(json["pool_blocks"], 256);
  EXPECT_EQ(json["operations"], 20000);
  EXPECT_EQ(json["violations"], 0);
  EXPECT_GE(json["success_share"], 0.6);
  uint64_t operations = 0, granted = 0, kinds = 0;
  for (const auto& [kind, count] : json["by_kind"].items()) {
    operations += count["operations"].get<uint64_t>();
    granted += count["granted"].get<uint64_t>();
    kinds += count["operations"] > 0 ? 1 : 0;
  }
  EXPECT_EQ(operations, json["operations"]);
  EXPECT_EQ(granted, json["granted"]);
  EXPECT_EQ(kinds, testing::kOperationKinds);
}

TEST(CommandStressTest, EqualSeedsGiveEqualRuns) {
  const auto run = [](const char* seed) {
    auto json =
        nlohmann::json::parse(Stress({"--ops=3000", seed, "--json"}).out);
    json.erase("seconds");
    json.erase("seed");
    return json;
  };
  EXPECT_EQ(run("--seed=5"), run("--seed=5"));
  EXPECT_NE(run("--seed=5"), run("--seed=6"));
}

TEST(CommandStressTest, EveryKindOfCacheTakesItsTurn) {
  // One short round of each.
  Progress progress(nullptr);
  for (uint64_t round = 0; round < 2 * testing::kRandomCacheKinds; ++round) {
    StressOptions options;
    options.operations = 1000;
    options.first_round = round;
    options.pool_blocks = 40;
    const StressResult result = RunStress(options, progress);
    EXPECT_EQ(result.violations, 0u) << round << ": " << result.violation;
    EXPECT_EQ(result.operations, 1000u);
  }
}

TEST(CommandStressTest, ThreadsTakeEffectInAnOrderThatTheModelFollows) {
  for (const char* threads : {"--threads=2", "--threads=5"}) {
    const Invocation run = Stress({"--ops=20000", threads, "--json"});
    EXPECT_EQ(run.code, kExitOk) << run.out << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json["operations"], 20000);
    EXPECT_EQ(json["violations"], 0);
    EXPECT_GE(json["success_share"], 0.4);
    EXPECT_GE(json["calls_compared"], 10000);
  }
}

TEST(CommandStressTest, AViolationSavesItsLogAndSaysHowToSeeItAgain) {
  const std::string log = TempFile("violation.oplog");
  for (const char* threads : {"--threads=1", "--threads=2"}) {
    const std::vector<std::string> flags = {"--ops=4000", "--seed=3", threads,
                                            "--log=" + log,
                                            "--pretend_violation_at=500"};
    const Invocation run = Stress(flags);
    EXPECT_EQ(run.code, kExitViolations);
    EXPECT_NE(run.out.find("declared a violation"), std::string::npos);
    EXPECT_NE(run.out.find("violations: 1\n"), std::string::npos);
    EXPECT_NE(run.out.find("--seed=3 --first_round=0"), std::string::npos);
    EXPECT_NE(run.out.find("pagedkv stress --replay=" + log),
              std::string::npos);
    // The log leads to the same state, where nothing is wrong in truth.
    const Invocation replay = Stress({"--replay=" + log, "--json"});
    EXPECT_EQ(replay.code, kExitOk) << replay.out << replay.err;
    const auto json = nlohmann::json::parse(replay.out);
    EXPECT_EQ(json["violations"], 0);
    EXPECT_GE(json["operations"], 100);
  }
}

TEST(CommandStressTest, AViolationIsReportedEvenIfItsLogCannotBeSaved) {
  const Invocation run = Stress({"--ops=2000", "--log=/nowhere/x.oplog",
                                 "--pretend_violation_at=50", "--json"});
  EXPECT_EQ(run.code, kExitViolations);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["violations"], 1);
  EXPECT_FALSE(json["violation"].contains("log"));
  EXPECT_NE(run.err.find("/nowhere/x.oplog"), std::string::npos);
}

// A log of one refused and some granted calls.
std::string SmallLog() {
  StringOpLog log;
  KvCacheOptions options;
  options.groups.resize(1);
  options.host_blocks = BlockCount(8);
  options.op_log = &log;
  auto manager = KvCacheManager::Create(options);
  EXPECT_TRUE(manager.ok()) << manager.status();
  const std::vector<TokenId> prompt(20, 1);
  const auto admission = (*manager)->Allocate(prompt);
  EXPECT_TRUE(admission.ok());
  EXPECT_TRUE((*manager)->Retire(admission->step).ok());
  EXPECT_FALSE((*manager)->Free(SequenceId(77)).ok());
  EXPECT_TRUE((*manager)->Free(admission->id).ok());
  return log.contents();
}

TEST(CommandStressTest, ALogThatTellsAnotherResultIsAViolation) {
  const std::string original = SmallLog();
  absl::string_view rest = original;
  std::string changed;
  for (uint64_t number = 0; !rest.empty(); ++number) {
    absl::string_view payload;
    ASSERT_TRUE(internal::UnframeRecord(number, &rest, &payload));
    std::string edited(payload);
    // The third operation, a Free, was refused with NotFound (5).
    if (number == 3) {
      ASSERT_EQ(edited[1], 5);
      edited[1] = 0;
    }
    changed += internal::FrameRecord(number, edited);
  }
  const std::string path = TempFile("changed.oplog");
  ASSERT_TRUE(WriteFile(path, original).ok());
  EXPECT_EQ(Stress({"--replay=" + path}).code, kExitOk);
  ASSERT_TRUE(WriteFile(path, changed).ok());
  const Invocation run = Stress({"--replay=" + path});
  EXPECT_EQ(run.code, kExitViolations);
  EXPECT_NE(run.out.find("record 3 (Free)"), std::string::npos) << run.out;
}

TEST(CommandStressTest, BadInputIsOneLineAndExitCodeTwo) {
  const std::string cut = TempFile("cut.oplog");
  ASSERT_TRUE(WriteFile(cut, SmallLog().substr(0, 100)).ok());
  const std::string text = TempFile("text.oplog");
  ASSERT_TRUE(WriteFile(text, "not a log at all").ok());
  for (const std::string& flag :
       {std::string("--ops=0"), std::string("--ops=-1"),
        std::string("--ops=many"), std::string("--threads=0"),
        std::string("--threads=1000"), std::string("--pool_blocks=0"),
        std::string("--seed="), std::string("--no_such_flag"),
        std::string("--replay=/nowhere/x"), std::string("--replay=/"),
        "--replay=" + cut, "--replay=" + text}) {
    const Invocation run = Stress({flag});
    EXPECT_EQ(run.code, kExitBadInput) << flag;
    EXPECT_EQ(run.out, "") << flag;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1)
        << flag << ": " << run.err;
  }
}

}  // namespace
}  // namespace paged_kv::tool
