// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// `pagedkv decode` and `pagedkv prefill` as their users meet them.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "attention/isa.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmarks/invoke_tool.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

// A shape of a few KiB, measured for an instant.
std::vector<std::string> Tiny(const std::string& command,
                              const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {command,         "--layers=2",
                                        "--context=70",  "--heads=6/2",
                                        "--head_dim=32", "--seconds=0"};
  if (command == "prefill") arguments.push_back("--new_tokens=20");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

nlohmann::json TinyJson(const std::string& command,
                        std::vector<std::string> more) {
  more.push_back("--json");
  const Invocation outcome = Invoke(Tiny(command, more));
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

void ExpectSane(const nlohmann::json& row) {
  for (const char* key :
       {"share_of_stream", "share_of_gather", "share_of_peak"}) {
    // No upper limit: a busy machine may disturb one part more than another,
    // which `disturbed` reports but does not prevent.
    EXPECT_GT(row[key], 0) << key;
  }
  EXPECT_GT(row["share_of_bound"], 0);
  const nlohmann::json& step = row["step_seconds"];
  EXPECT_GT(step["min"], 0);
  EXPECT_LE(step["min"], step["median"]);
  EXPECT_LE(step["median"], step["p90"]);
  EXPECT_GT(row["max_error"], 0);
  EXPECT_LT(row["max_error"], 1e-3);
  EXPECT_EQ(row["error"]["within_limits"], true);
  EXPECT_GT(row["error"]["outputs"], 0);
  for (const char* part : {"kernel", "gather", "stream", "peak"}) {
    EXPECT_GE(row["rounds"][part]["total"], 3) << part;
    EXPECT_GE(row["rounds"][part]["counted"], 1) << part;
  }
  // What is derived follows from what was measured.
  const double seconds = step["median"];
  const double rate = row["distinct_kv_bytes"].get<double>() / seconds;
  const double ceiling = row["peak_flops_per_second"].get<double>() /
                         row["flops_per_byte"].get<double>();
  EXPECT_DOUBLE_EQ(row["bytes_per_second"], rate);
  EXPECT_DOUBLE_EQ(row["share_of_stream"],
                   rate / row["stream_bytes_per_second"].get<double>());
  EXPECT_DOUBLE_EQ(row["share_of_gather"],
                   rate / row["gather_bytes_per_second"].get<double>());
  EXPECT_DOUBLE_EQ(row["share_of_peak"],
                   row["flops"].get<double>() / seconds /
                       row["peak_flops_per_second"].get<double>());
  double highest = 0;
  for (const nlohmann::json& peak : row["peaks"]) {
    highest = std::max(highest, peak["flops_per_second"].get<double>());
  }
  EXPECT_EQ(row["peak_flops_per_second"], highest);
  EXPECT_EQ(row["peaks"][row["peak"].get<std::string>()]["share"],
            row["share_of_peak"]);
  EXPECT_DOUBLE_EQ(row["arithmetic_ceiling_bytes_per_second"], ceiling);
  EXPECT_DOUBLE_EQ(
      row["bound"]["bytes_per_second"],
      std::min(ceiling, row["stream_bytes_per_second"].get<double>()));
}

TEST(CommandAttentionTest, DecodeJsonHasEveryKey) {
  const nlohmann::json json = TinyJson("decode", {"--batch=3", "--seed=5"});
  EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
  EXPECT_EQ(json["command"], "decode");
  EXPECT_EQ(json["seed"], 5);
  EXPECT_TRUE(json["trace_sha256"].is_null());
  EXPECT_EQ(json["machine"]["threads"], 1);
  EXPECT_EQ(json["machine"]["isa"],
            attention::IsaName(attention::SupportedIsas().front()));
  EXPECT_FALSE(json["machine"]["processor"].get<std::string>().empty());
  EXPECT_EQ(json["query_heads"], 6);
  EXPECT_EQ(json["kv_heads"], 2);
  EXPECT_EQ(json["head_dim"], 32);
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["block_tokens"], 16);
  EXPECT_EQ(json["k_order"], "tiled");
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["max_tokens"], 70);
  EXPECT_EQ(json["queries"], 3);
  EXPECT_EQ(json["layers"], 2);
  EXPECT_EQ(json["pages"], 3 * 5);
  EXPECT_EQ(json["kv_bytes"], 3 * 70 * 2 * 2 * 32 * 2);
  EXPECT_EQ(json["distinct_kv_bytes"], json["kv_bytes"]);
  EXPECT_EQ(json["flops"], 3 * 70 * 6 * 4 * 32);
  EXPECT_EQ(json["flops_per_byte"], 3);  // query heads per KV head, bf16
  EXPECT_DOUBLE_EQ(json["tokens_per_second"],
                   3 / json["step_seconds"]["median"].get<double>());
  EXPECT_FALSE(json.contains("append_seconds"));
  ExpectSane(json);
}

TEST(CommandAttentionTest, PrefillCountsWhatIsNotMasked) {
  const nlohmann::json json =
      TinyJson("prefill", {"--batch=2", "--dtype=f32", "--threads=2"});
  EXPECT_EQ(json["command"], "prefill");
  EXPECT_EQ(json["machine"]["threads"], 2);
  EXPECT_EQ(json["peak"], "f32_fma");
  EXPECT_EQ(json["queries"], 40);
  EXPECT_EQ(json["max_tokens"], 90);
  // Query i of 20 sees 70 + i + 1 keys.
  EXPECT_EQ(json["flops"], 2 * (20 * 70 + 210) * 6 * 4 * 32);
  EXPECT_LT(json["max_error"], 1e-5);
  ExpectSane(json);
}

TEST(CommandAttentionTest, EveryInstructionSetIsMeasured) {
  for (const attention::Isa isa : attention::SupportedIsas()) {
    const std::string name = attention::IsaName(isa);
    const nlohmann::json json = TinyJson("decode", {"--isa=" + name});
    EXPECT_EQ(json["machine"]["isa"], name);
    ExpectSane(json);
  }
}

TEST(CommandAttentionTest, ListsGiveARowPerValue) {
  const nlohmann::json json = TinyJson(
      "decode", {"--batch=1,3,2", "--context=40,16,7", "--block_tokens=32"});
  EXPECT_FALSE(json.contains("share_of_stream"));
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][1]["name"], "3 x 16");
  EXPECT_EQ(json["rows"][2]["max_tokens"], 7);
  for (const nlohmann::json& row : json["rows"]) ExpectSane(row);
}

TEST(CommandAttentionTest, PrefixSharingCanBeTurnedOff) {
  const nlohmann::json json = TinyJson(
      "decode", {"--batch=4", "--shared_prefix=50", "--prefix_sharing=off"});
  EXPECT_EQ(json["shared_prefix_tokens"], 48);
  EXPECT_GT(json["plan_seconds"], 0);
  ExpectSane(json);
}

TEST(CommandAttentionTest, PlainKeysSharedPrefixAndAppend) {
  const nlohmann::json json = TinyJson(
      "decode",
      {"--batch=4", "--k_order=plain", "--shared_prefix=50", "--append"});
  EXPECT_EQ(json["k_order"], "plain");
  EXPECT_EQ(json["shared_prefix_tokens"], 48);
  EXPECT_EQ(json["pages"], 3 + 4 * 2);
  EXPECT_EQ(json["distinct_kv_bytes"], (4 * 70 - 3 * 48) * 2 * 2 * 32 * 2);
  EXPECT_GT(json["append_seconds"], 0);
  EXPECT_DOUBLE_EQ(json["append_share_of_attention"],
                   json["append_seconds"].get<double>() /
                       json["step_seconds"]["median"].get<double>());
  ExpectSane(json);
}

TEST(CommandAttentionTest, EightBitPagesCountTheirScales) {
  for (const char* dtype : {"fp8_e4m3", "int8"}) {
    const nlohmann::json json = TinyJson(
        "decode", {"--batch=2", "--append", std::string("--dtype=") + dtype});
    EXPECT_EQ(json["dtype"], dtype);
    // 32 bytes and a scale for K and for V of each head.
    EXPECT_EQ(json["kv_bytes"], 2 * 70 * 2 * 2 * (32 + 4));
    ExpectSane(json);
  }
}

TEST(CommandAttentionTest, BlocksThatAreNoWholeTilesArePlain) {
  const nlohmann::json json = TinyJson("decode", {"--block_tokens=5"});
  EXPECT_EQ(json["k_order"], "plain");
  ExpectSane(json);
}

TEST(CommandAttentionTest, LengthsAreDrawnFromATrace) {
  const std::string trace = TestFile("azure.csv");
  WriteAll(trace,
           "TIMESTAMP,ContextTokens,GeneratedTokens\n"
           "2023-11-16 18:15:46.68,30,5\n"
           "2023-11-16 18:15:50.95,60,7\n");
  const std::vector<std::string> flags = {
      "decode",        "--layers=1",      "--heads=6/2",
      "--head_dim=32", "--seconds=0",     "--batch=20",
      "--json",        "--lengths=azure", "--trace=" + trace};
  const Invocation outcome = Invoke(flags);
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["batch"], 20);
  EXPECT_EQ(json["trace_sha256"], Sha256Hex(ReadAll(trace)));
  EXPECT_GE(json["max_tokens"], 60);
  EXPECT_LE(json["max_tokens"], 67);
  const double tokens = json["kv_bytes"].get<double>() / (2 * 2 * 32 * 2);
  EXPECT_GT(tokens, 20 * 30);
  EXPECT_LT(tokens, 20 * 67);
  ExpectSane(json);

  const nlohmann::json built_in =
      TinyJson("prefill", {"--batch=2", "--lengths=azure", "--layers=1"});
  EXPECT_GE(built_in["queries"], 2 * 2);
  EXPECT_LE(built_in["queries"], 2 * 14050);
  ExpectSane(built_in);
}

TEST(CommandAttentionTest, TableNamesTheBounds) {
  const Invocation outcome = Invoke(Tiny("decode", {"--batch=1,2"}));
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  for (const char* word :
       {"Paged decode: 6 query / 2 KV heads of 32, bf16, blocks of 16 tokens",
        "of gather", "of stream", "of peak", "of bound", "max error", "rounds",
        "min", "p90", "flop/byte", "1 x 70", "2 x 70", "1 thread"}) {
    EXPECT_TRUE(absl::StrContains(outcome.out, word)) << word << "\n"
                                                      << outcome.out;
  }
}

TEST(CommandAttentionTest, RooflineIsDrawn) {
  if (std::system("gnuplot --version >/dev/null") != 0) {
    GTEST_SKIP() << "no gnuplot";
  }
  const std::string svg = TestFile("roofline.svg");
  const Invocation outcome =
      Invoke(Tiny("decode", {"--batch=1,2", "--plot=" + svg}));
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  const std::string text = ReadAll(svg);
  for (const char* word : {"</svg>", "2 x 70", "stream ", "gather ",
                           "flops per byte", "of the bound"}) {
    EXPECT_TRUE(absl::StrContains(text, word)) << word;
  }
}

struct BadUse {
  const char* what;
  std::vector<std::string> arguments;
  const char* message;
};

std::ostream& operator<<(std::ostream& os, const BadUse& bad) {
  return os << bad.what;
}

class AttentionBadUseTest : public testing::TestWithParam<BadUse> {};

TEST_P(AttentionBadUseTest, IsOneLineAndExitCodeTwo) {
  const Invocation outcome = Invoke(GetParam().arguments);
  EXPECT_EQ(outcome.code, kExitBadInput);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(absl::StartsWith(outcome.err, "pagedkv ")) << outcome.err;
  EXPECT_TRUE(absl::StrContains(outcome.err, GetParam().message))
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Flags, AttentionBadUseTest,
    testing::Values(
        BadUse{"heads do not divide",
               {"decode", "--heads=28/5"},
               "5 KV heads do not divide 28 query heads"},
        BadUse{"one number of heads", {"decode", "--heads=28"}, "QUERY/KV"},
        BadUse{"no heads", {"decode", "--heads=0/0"}, "'0/0'"},
        BadUse{"negative heads", {"decode", "--heads=-4/4"}, "'-4/4'"},
        BadUse{"dtype",
               {"decode", "--dtype=f8"},
               "unknown dtype 'f8'; use one of f32, f16, bf16"},
        BadUse{"isa", {"prefill", "--isa=mmx"}, "no ISA is called \"mmx\""},
        BadUse {
          "isa of another machine",
              {"decode", "--layers=1", "--context=16", "--isa=neon"},
#if defined(__aarch64__)
              ""
        },
#else
              "neon does not run here"
        },
#endif
        BadUse{"zero batch", {"decode", "--batch=0"}, "--batch='0'"},
        BadUse{"zero in a list", {"decode", "--batch=1,0"}, "'0'"},
        BadUse{"empty list", {"decode", "--batch=1,"}, "''"},
        BadUse{"zero context", {"decode", "--context=0"}, "--context='0'"},
        BadUse{"zero block", {"decode", "--block_tokens=0"}, "--block_tokens"},
        BadUse{"zero threads", {"decode", "--threads=0"}, "--threads"},
        BadUse{"zero head_dim", {"decode", "--head_dim=0"}, "--head_dim"},
        BadUse{"zero new tokens",
               {"prefill", "--new_tokens=0"},
               "--new_tokens='0'"},
        BadUse{"head_dim of no kernel",
               {"decode", "--layers=1", "--context=16", "--head_dim=12"},
               "head_dim"},
        BadUse{"lists of different lengths",
               {"decode", "--batch=1,2,3", "--context=16,32"},
               "lists of 3 and of 2 values"},
        BadUse{"prefix longer than a sequence",
               {"decode", "--context=16", "--shared_prefix=17"},
               "shared prefix of 17 tokens is longer than a sequence of 16"},
        BadUse{"more than the memory",
               {"decode", "--batch=65536", "--context=16777216",
                "--block_tokens=4096"},
               "GiB are available"},
        BadUse{"more pages than a table holds",
               {"decode", "--batch=65536", "--context=16777216",
                "--block_tokens=1"},
               "1099511627776 pages"},
        BadUse{"k_order", {"decode", "--k_order=odd"}, "use tiled or plain"},
        BadUse{"lengths", {"decode", "--lengths=all"}, "uniform or azure"},
        BadUse{"trace without lengths",
               {"decode", "--trace=a.csv"},
               "--trace needs --lengths=azure"},
        BadUse{"missing trace",
               {"decode", "--lengths=azure", "--trace=no/such"},
               "cannot open 'no/such'"},
        BadUse{"plot suffix", {"decode", "--plot=a.pdf"}, ".svg or .png"},
        BadUse{"prefix_sharing",
               {"decode", "--prefix_sharing=on"},
               "use auto or off"},
        BadUse{"no shared prefix in prefill",
               {"prefill", "--shared_prefix=16"},
               "--shared_prefix"}));

}  // namespace
}  // namespace paged_kv::tool
