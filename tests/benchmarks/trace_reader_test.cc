// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/shared_traces.h"

namespace paged_kv::tool {
namespace {

constexpr char kMooncake[] =
    R"({"timestamp": 100, "input_length": 1000, "output_length": 52, "hash_ids": [7, 9]}
{"timestamp": 3100, "input_length": 512, "output_length": 1, "hash_ids": [7]}
)";
constexpr char kBailian[] =
    R"({"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.25, "input_length": 33, "output_length": 132, "type": "text", "turn": 1, "hash_ids": [1089, 1090, 6326]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 16, "output_length": 0, "type": "text", "turn": 2, "hash_ids": [1089]}
)";
constexpr char kAzure[] =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n";
constexpr char kBurstGpt[] =
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45.5,GPT-4,1087,230,1317,\"API, log\"\n";

absl::StatusOr<Trace> Parse(const std::string& text,
                            TraceFormat format = TraceFormat::kAuto,
                            bool skip = false) {
  TraceReadOptions options;
  options.format = format;
  options.skip_bad_lines = skip;
  return ParseTrace(text, "t", options);
}

void ExpectRequest(const Request& r, absl::Duration arrival, uint32_t prompt,
                   uint32_t output, const std::vector<uint32_t>& hash_ids) {
  EXPECT_EQ(r.arrival, arrival);
  EXPECT_EQ(r.prompt_tokens, prompt);
  EXPECT_EQ(r.output_tokens, output);
  EXPECT_EQ(r.hash_ids, hash_ids);
}

void ExpectMooncake(const absl::StatusOr<Trace>& trace) {
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kMooncake);
  EXPECT_EQ(trace->hash_block_tokens, 512u);
  EXPECT_EQ(trace->distinct_hash_ids, 2u);
  EXPECT_EQ(trace->skipped_lines, 0u);
  ASSERT_EQ(trace->requests.size(), 2u);
  ExpectRequest(trace->requests[0], absl::ZeroDuration(), 1000, 52, {0, 1});
  ExpectRequest(trace->requests[1], absl::Seconds(3), 512, 1, {0});
  EXPECT_EQ(trace->prompt_tokens(), 1512u);
  EXPECT_EQ(trace->max_total_tokens(), 1052u);
}

TEST(TraceReaderTest, Mooncake) { ExpectMooncake(Parse(kMooncake)); }

TEST(TraceReaderTest, LineEndsMarksAndMissingFinalNewlineDoNotMatter) {
  const std::string crlf = absl::StrReplaceAll(kMooncake, {{"\n", "\r\n"}});
  ExpectMooncake(Parse(crlf));
  ExpectMooncake(Parse(absl::StrCat("\xEF\xBB\xBF", kMooncake)));
  std::string cut = kMooncake;
  cut.pop_back();
  ExpectMooncake(Parse(cut));
  const std::string azure = absl::StrReplaceAll(kAzure, {{"\n", "\r\n"}});
  const absl::StatusOr<Trace> trace =
      Parse(absl::StrCat("\xEF\xBB\xBF", azure));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kAzure);
  EXPECT_EQ(trace->requests.size(), 2u);
}

TEST(TraceReaderTest, Bailian) {
  const absl::StatusOr<Trace> trace = Parse(kBailian);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kBailian);
  EXPECT_EQ(trace->hash_block_tokens, 16u);
  ASSERT_EQ(trace->requests.size(), 2u);
  ExpectRequest(trace->requests[0], absl::ZeroDuration(), 33, 132, {0, 1, 2});
  ExpectRequest(trace->requests[1], absl::Milliseconds(1250), 16, 0, {0});
}

TEST(TraceReaderTest, Azure) {
  const absl::StatusOr<Trace> trace = Parse(kAzure);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kAzure);
  EXPECT_EQ(trace->hash_block_tokens, 0u);
  ASSERT_EQ(trace->requests.size(), 2u);
  ExpectRequest(trace->requests[0], absl::ZeroDuration(), 374, 44, {});
  ExpectRequest(trace->requests[1], absl::Nanoseconds(4314579000), 396, 109,
                {});
}

TEST(TraceReaderTest, Azure2024HasZones) {
  const absl::StatusOr<Trace> trace = Parse(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-10 00:00:00.009930+00:00,2162,5\n"
      "2024-05-10T02:00:01.009930+02:00,2399,6\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests[1].arrival, absl::Seconds(1));
}

TEST(TraceReaderTest, BurstGptAndQuotes) {
  const absl::StatusOr<Trace> trace = Parse(kBurstGpt);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kCsv);
  ASSERT_EQ(trace->requests.size(), 2u);
  ExpectRequest(trace->requests[0], absl::ZeroDuration(), 472, 18, {});
  ExpectRequest(trace->requests[1], absl::Milliseconds(40500), 1087, 230, {});
}

TEST(TraceReaderTest, CsvByHeaderNamesInAnyOrderWithOrWithoutTime) {
  const absl::StatusOr<Trace> timed = Parse(
      "output_len,\"note \"\"x\"\"\",prompt_len,arrived_at\n"
      "9,\"a,\"\"b\"\"\",7,1.5\n");
  ASSERT_TRUE(timed.ok()) << timed.status();
  ExpectRequest(timed->requests[0], absl::ZeroDuration(), 7, 9, {});
  const absl::StatusOr<Trace> untimed =
      Parse("Prompt Tokens,Completion Tokens\n3,4\n5,6\n");
  ASSERT_TRUE(untimed.ok()) << untimed.status();
  ExpectRequest(untimed->requests[1], absl::ZeroDuration(), 5, 6, {});
}

TEST(TraceReaderTest, DigestIsOfTheBytes) {
  EXPECT_NE(
      Parse(kMooncake)->sha256,
      Parse(absl::StrCat(kMooncake, kMooncake).substr(0, sizeof(kMooncake) - 2))
          ->sha256);
  EXPECT_EQ(Parse(kAzure)->sha256.size(), 64u);
}

TEST(TraceReaderTest, StopsAfterMaxRequests) {
  TraceReadOptions options;
  options.max_requests = 1;
  const absl::StatusOr<Trace> trace = ParseTrace(kMooncake, "t", options);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->requests.size(), 1u);
}

// A bad line in the middle of a good file.
struct BadLine {
  const char* what;
  const char* good;     // file to spoil: the line goes behind its second line
  const char* line;     // the bad one
  const char* message;  // part of what the error must say
};

std::ostream& operator<<(std::ostream& os, const BadLine& bad) {
  return os << bad.what;
}

class BadLineTest : public testing::TestWithParam<BadLine> {
 protected:
  // The bad line becomes line 3, before the rest of the good lines.
  std::string File() const {
    const std::string good = GetParam().good;
    const size_t second_end = good.find('\n', good.find('\n') + 1) + 1;
    return absl::StrCat(good.substr(0, second_end), GetParam().line, "\n",
                        good.substr(second_end));
  }
};

TEST_P(BadLineTest, IsRefusedWithFileLineAndValue) {
  const absl::Status status = Parse(File()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(status.message(), "t:3: ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), GetParam().message))
      << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
}

TEST_P(BadLineTest, IsCountedOnRequestAndTheRestIsRead) {
  const absl::StatusOr<Trace> good = Parse(GetParam().good);
  const absl::StatusOr<Trace> trace = Parse(File(), TraceFormat::kAuto, true);
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->skipped_lines, 1u);
  ASSERT_EQ(trace->requests.size(), good->requests.size());
  for (size_t i = 0; i < good->requests.size(); ++i) {
    const Request& r = good->requests[i];
    ExpectRequest(trace->requests[i], r.arrival, r.prompt_tokens,
                  r.output_tokens, r.hash_ids);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadLineTest,
    testing::Values(
        BadLine{"truncated", kMooncake,
                R"({"timestamp": 3100, "input_length": 10, "outp)",
                "not a complete JSON object"},
        BadLine{"empty", kMooncake, "", "empty"},
        BadLine{"blank", kMooncake, "  ", "not a complete JSON object"},
        BadLine{"not an object", kMooncake, "[1, 2]",
                "not a complete JSON object"},
        BadLine{"two objects", kMooncake, "{} {}",
                "not a complete JSON object"},
        BadLine{"not UTF-8", kMooncake, "{\"timestamp\": \"\xff\"}",
                "not a complete JSON object"},
        BadLine{"control characters", kMooncake, "\x01\x02\x1b[31m",
                "\\x01\\x02\\x1b[31m"},
        BadLine{"no length", kMooncake,
                R"({"timestamp": 3100, "output_length": 1, "hash_ids": []})",
                "no key 'input_length'"},
        BadLine{
            "negative", kMooncake,
            R"({"timestamp":3100,"input_length":-5,"output_length":1,"hash_ids":[]})",
            "input_length -5 is negative"},
        BadLine{
            "zero-length prompt", kMooncake,
            R"({"timestamp":3100,"input_length":0,"output_length":1,"hash_ids":[]})",
            "input_length 0 is too small"},
        BadLine{
            "huge", kMooncake,
            R"({"timestamp":3100,"input_length":99999999999999999999,"output_length":1,"hash_ids":[]})",
            "input_length 1e+20 is above the limit of 16777216"},
        BadLine{
            "overflowing", kMooncake,
            R"({"timestamp":3100,"input_length":1e999,"output_length":1,"hash_ids":[]})",
            "1e999"},
        BadLine{
            "huge output", kMooncake,
            R"({"timestamp":3100,"input_length":5,"output_length":4294967296,"hash_ids":[1]})",
            "output_length"},
        BadLine{
            "text", kMooncake,
            R"({"timestamp":3100,"input_length":"many","output_length":1,"hash_ids":[]})",
            "input_length '\\\"many\\\"' is not a whole number"},
        BadLine{
            "fraction", kMooncake,
            R"({"timestamp":3100,"input_length":10.5,"output_length":1,"hash_ids":[1]})",
            "input_length '10.5' is not a whole number"},
        BadLine{
            "null", kMooncake,
            R"({"timestamp":3100,"input_length":null,"output_length":1,"hash_ids":[1]})",
            "'null' is not a whole number"},
        BadLine{
            "too few ids", kMooncake,
            R"({"timestamp":3100,"input_length":1025,"output_length":1,"hash_ids":[1,2]})",
            "hash_ids has 2 ids, but input_length 1025 needs 3"},
        BadLine{
            "too many ids", kMooncake,
            R"({"timestamp":3100,"input_length":512,"output_length":1,"hash_ids":[1,2]})",
            "hash_ids has 2 ids, but input_length 512 needs 1"},
        BadLine{
            "negative id", kMooncake,
            R"({"timestamp":3100,"input_length":512,"output_length":1,"hash_ids":[-1]})",
            "hash id '-1'"},
        BadLine{
            "ids not an array", kMooncake,
            R"({"timestamp":3100,"input_length":512,"output_length":1,"hash_ids":7})",
            "hash_ids '7' is not an array"},
        BadLine{
            "unsorted", kMooncake,
            R"({"timestamp":3099,"input_length":512,"output_length":1,"hash_ids":[7]})",
            "timestamp is 1ms earlier than the line before"},
        BadLine{
            "negative time", kMooncake,
            R"({"timestamp":-1,"input_length":512,"output_length":1,"hash_ids":[7]})",
            "timestamp '-1' is negative"},
        BadLine{
            "huge time", kMooncake,
            R"({"timestamp":1e300,"input_length":512,"output_length":1,"hash_ids":[7]})",
            "too far in the future"},
        BadLine{
            "Bailian ids", kBailian,
            R"({"chat_id":1,"timestamp":62.5,"input_length":17,"output_length":1,"hash_ids":[1]})",
            "hash_ids has 1 ids, but input_length 17 needs 2 of 16"}));

INSTANTIATE_TEST_SUITE_P(
    Csv, BadLineTest,
    testing::Values(
        BadLine{"truncated", kAzure, "2023-11-16 18:15:47.0,396",
                "has 2 fields, the header has 3"},
        BadLine{"too long", kAzure, "2023-11-16 18:15:47.0,396,1,2",
                "has 4 fields, the header has 3"},
        BadLine{"empty", kAzure, "", "empty"},
        BadLine{"empty field", kAzure, "2023-11-16 18:15:47.0,,109",
                "ContextTokens '' is not a whole number"},
        BadLine{"text", kAzure, "2023-11-16 18:15:47.0,many,109",
                "ContextTokens 'many' is not a whole number"},
        BadLine{"trailing text", kAzure, "2023-11-16 18:15:47.0,396x,109",
                "ContextTokens '396x' is not a whole number"},
        BadLine{"negative", kAzure, "2023-11-16 18:15:47.0,-396,109",
                "ContextTokens -396 is negative"},
        BadLine{"zero", kAzure, "2023-11-16 18:15:47.0,0,109",
                "ContextTokens 0 is too small"},
        BadLine{"huge", kAzure,
                "2023-11-16 18:15:47.0,396,99999999999999999999",
                "GeneratedTokens 1e+20 is above the limit"},
        BadLine{"infinite", kAzure, "2023-11-16 18:15:47.0,396,1e999",
                "GeneratedTokens inf is above the limit"},
        BadLine{"nan", kAzure, "2023-11-16 18:15:47.0,nan,1",
                "ContextTokens 'nan' is not a whole number"},
        BadLine{"fraction", kAzure, "2023-11-16 18:15:47.0,396.5,1",
                "ContextTokens '396.5' is not a whole number"},
        BadLine{"no date", kAzure, "2023-13-16 18:15:47.0,396,109",
                "timestamp '2023-13-16 18:15:47.0' is neither"},
        BadLine{"no time at all", kAzure, "infinite-future,396,109",
                "timestamp 'infinite-future' is not between 1970 and 2286"},
        BadLine{"far future", kAzure, "9999-11-16 18:15:47.0,396,109",
                "is not between 1970 and 2286"},
        BadLine{"before 1970", kAzure, "1969-12-31 23:59:59.0,396,109",
                "is not between 1970 and 2286"},
        BadLine{"text as time", kAzure, "yesterday,396,109",
                "timestamp 'yesterday' is not a number"},
        BadLine{"unsorted", kAzure, "2023-11-16 18:15:46.0,396,109",
                "timestamp is 680.59ms earlier"},
        BadLine{"open quote", kBurstGpt, "46,\"GPT-4,1,2,3,x",
                "unclosed quote"},
        BadLine{"negative time", kBurstGpt, "-46,GPT-4,1,2,3,x",
                "timestamp '-46' is negative"},
        BadLine{"NUL bytes", kBurstGpt, "46,GPT-4,\x7f,2,3,x",
                "Request tokens '\\x7f' is not"}));

// Quoting a value must not call itself once per level of the value.
TEST(TraceReaderTest, DeeplyNestedValuesAreRefused) {
  constexpr size_t kLevels = 500'000;
  const std::string nested =
      std::string(kLevels, '[') + std::string(kLevels, ']');
  for (const char* key :
       {"timestamp", "input_length", "output_length", "hash_ids"}) {
    std::string line =
        R"({"timestamp":1,"input_length":5,"output_length":1,"hash_ids":[9]})";
    const size_t value = line.find(':', line.find(key)) + 1;
    line.replace(value, line.find_first_of(",}", value) - value,
                 std::string_view(key) == "hash_ids"
                     ? absl::StrCat("[", nested, "]")
                     : nested);
    const absl::Status status = Parse(line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 100u) << key;
  }
}

TEST(TraceReaderTest, NothingToReplay) {
  const absl::Status empty = Parse("").status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(empty.message(), "t: the file is empty"));
  const absl::Status header =
      Parse("TIMESTAMP,ContextTokens,GeneratedTokens\n").status();
  EXPECT_TRUE(absl::StrContains(header.message(), "no request to replay"));
  const absl::Status all_bad =
      Parse("{\n{\n", TraceFormat::kMooncake, true).status();
  EXPECT_TRUE(absl::StrContains(all_bad.message(), "2 bad lines left out"));
}

TEST(TraceReaderTest, UnknownHeadersAndFormats) {
  const absl::Status status = Parse("a,b,c\n1,2,3\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "t:1: the header 'a,b,c' names no column"))
      << status;
  EXPECT_TRUE(absl::StrContains(
      Parse(kBurstGpt, TraceFormat::kAzure).status().message(),
      "an Azure trace begins with"));
  EXPECT_FALSE(Parse(kAzure, TraceFormat::kMooncake).ok());
  EXPECT_FALSE(ParseTraceFormat("azur").ok());
  EXPECT_EQ(*ParseTraceFormat("bailian"), TraceFormat::kBailian);
}

TEST(TraceReaderTest, FilesThatCannotBeRead) {
  const absl::Status missing = ReadTrace("no/such/file", {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(missing.message(), "cannot open"));
  EXPECT_EQ(ReadTrace("/", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TraceReaderTest, PublicConversationTrace) {
  PAGED_KV_NEEDS_TRACE(path, kConversationTrace);
  const absl::StatusOr<Trace> trace = ReadTrace(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, TraceFormat::kAzure);
  EXPECT_EQ(trace->requests.size(), 19366u);
  EXPECT_EQ(trace->max_total_tokens(), 14089u);
}

TEST(TraceReaderTest, PublicMooncakeTrace) {
  PAGED_KV_NEEDS_TRACE(path, kMooncakeTrace);
  const absl::StatusOr<Trace> trace = ReadTrace(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests.size(), 12031u);
  EXPECT_EQ(trace->prompt_tokens(), 144793823u);
  EXPECT_EQ(trace->distinct_hash_ids, 182790u);
}

}  // namespace
}  // namespace paged_kv::tool
