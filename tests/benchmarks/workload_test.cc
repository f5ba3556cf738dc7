// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/workload.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/tool/sha256.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

Trace Generate(WorkloadProfile profile, uint32_t requests, uint64_t seed = 1) {
  WorkloadOptions options;
  options.profile = profile;
  options.requests = requests;
  options.seed = seed;
  return GenerateWorkload(options);
}

std::string Digest(const Trace& trace) {
  std::string text;
  for (const Request& r : trace.requests) {
    absl::StrAppend(&text, absl::ToInt64Nanoseconds(r.arrival), " ",
                    r.prompt_tokens, " ", r.output_tokens);
    for (const uint32_t id : r.hash_ids) absl::StrAppend(&text, " ", id);
    absl::StrAppend(&text, "\n");
  }
  return Sha256Hex(text);
}

struct Lengths {
  double prompt_mean, prompt_median, output_mean, output_median;
};

Lengths Measure(const Trace& trace) {
  std::vector<double> prompts, outputs;
  double prompt_sum = 0, output_sum = 0;
  for (const Request& r : trace.requests) {
    prompts.push_back(r.prompt_tokens);
    outputs.push_back(r.output_tokens);
    prompt_sum += r.prompt_tokens;
    output_sum += r.output_tokens;
  }
  const size_t middle = prompts.size() / 2;
  std::nth_element(prompts.begin(), prompts.begin() + middle, prompts.end());
  std::nth_element(outputs.begin(), outputs.begin() + middle, outputs.end());
  const double n = static_cast<double>(prompts.size());
  return {prompt_sum / n, prompts[middle], output_sum / n, outputs[middle]};
}

void ExpectNear(const Lengths& got, const Lengths& published, double share) {
  EXPECT_NEAR(got.prompt_mean, published.prompt_mean,
              share * published.prompt_mean);
  EXPECT_NEAR(got.prompt_median, published.prompt_median,
              share * published.prompt_median);
  EXPECT_NEAR(got.output_mean, published.output_mean,
              share * published.output_mean);
  EXPECT_NEAR(got.output_median, published.output_median,
              share * published.output_median);
}

TEST(WorkloadTest, AzureLengthsMatchThePublicTrace) {
  ExpectNear(Measure(Generate(WorkloadProfile::kAzureConversation, 20000)),
             {1154.7, 1020, 211.1, 129}, 0.05);
  ExpectNear(Measure(Generate(WorkloadProfile::kAzureCode, 20000)),
             {2047.8, 1469, 27.9, 13}, 0.12);
}

TEST(WorkloadTest, MooncakeLengthsMatchThePublicTrace) {
  ExpectNear(Measure(Generate(WorkloadProfile::kMooncakeConversation, 12000)),
             {12035.1, 6909, 342.6, 350}, 0.10);
}

// 37.4 % of the public trace's prompt tokens lie in whole hash blocks that an
// earlier prompt began with.
TEST(WorkloadTest, MooncakeSharesAsMuchAsThePublicTrace) {
  const Trace trace = Generate(WorkloadProfile::kMooncakeConversation, 12000);
  std::unordered_set<uint32_t> seen;
  uint64_t shared = 0;
  for (const Request& r : trace.requests) {
    ASSERT_EQ(r.hash_ids.size(), (r.prompt_tokens + 511) / 512);
    for (const uint32_t id : r.hash_ids) {
      ASSERT_LT(id, trace.distinct_hash_ids);
      if (seen.count(id) == 0) break;
      shared += 512;
    }
    seen.insert(r.hash_ids.begin(), r.hash_ids.end());
  }
  EXPECT_NEAR(
      static_cast<double>(shared) / static_cast<double>(trace.prompt_tokens()),
      0.374, 0.03);
  EXPECT_EQ(seen.size(), trace.distinct_hash_ids);
}

TEST(WorkloadTest, ArrivalsAscendAtThePublicRateOrTheOneAskedFor) {
  for (const double rate : {0.0, 50.0}) {
    WorkloadOptions options;
    options.profile = WorkloadProfile::kAzureConversation;
    options.requests = 20000;
    options.requests_per_second = rate;
    const Trace trace = GenerateWorkload(options);
    EXPECT_EQ(trace.requests.front().arrival, absl::ZeroDuration());
    EXPECT_TRUE(std::is_sorted(trace.requests.begin(), trace.requests.end(),
                               [](const Request& a, const Request& b) {
                                 return a.arrival < b.arrival;
                               }));
    const double seconds = absl::ToDoubleSeconds(trace.requests.back().arrival);
    const double expected = rate == 0 ? 5.53 : rate;
    EXPECT_NEAR(20000 / seconds, expected, 0.03 * expected);
  }
}

TEST(WorkloadTest, CodeArrivesInBursts) {
  const Trace trace = Generate(WorkloadProfile::kAzureCode, 50000);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < trace.requests.size(); ++i) {
    const double gap = absl::ToDoubleSeconds(trace.requests[i].arrival -
                                             trace.requests[i - 1].arrival);
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(trace.requests.size() - 1);
  const double mean = sum / n;
  EXPECT_NEAR(mean, 1 / 2.567, 0.15 / 2.567);
  EXPECT_GT(squares / n / (mean * mean) - 1, 9 * 9);  // CV 13.2 in the trace
}

TEST(WorkloadTest, SeedsDifferAndRepeat) {
  const Trace a = Generate(WorkloadProfile::kMooncakeConversation, 200, 1);
  const Trace b = Generate(WorkloadProfile::kMooncakeConversation, 200, 1);
  const Trace c = Generate(WorkloadProfile::kMooncakeConversation, 200, 2);
  EXPECT_EQ(Digest(a), Digest(b));
  EXPECT_NE(Digest(a), Digest(c));
}

// Pins the generator: a seed must mean the same workload on every platform.
TEST(WorkloadTest, SameWorkloadEverywhere) {
  EXPECT_EQ(Digest(Generate(WorkloadProfile::kAzureConversation, 1000)),
            "75dc820051c52de41169763129b5f47e8a3cc4b20544d5d23e6dda066c9c6497");
  EXPECT_EQ(Digest(Generate(WorkloadProfile::kAzureCode, 1000)),
            "b713227ed1f7d68ebcdafd6f63340677ae221fce7295768000baba94b65650f0");
  EXPECT_EQ(Digest(Generate(WorkloadProfile::kMooncakeConversation, 1000)),
            "40d225b28c5b86a10fe65568fee98d0d0a0012aa0b3607ec5874eb5f60bef2f8");
}

TEST(WorkloadTest, Names) {
  for (const char* name : {"azure_conv", "azure_code", "mooncake_conv"}) {
    const absl::StatusOr<WorkloadProfile> profile = ParseWorkload(name);
    ASSERT_TRUE(profile.ok());
    EXPECT_EQ(WorkloadName(*profile), name);
  }
  EXPECT_EQ(ParseWorkload("azure").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paged_kv::tool
