// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/token_source.h"
#include "absl/types/span.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

Request MakeRequest(uint32_t prompt, uint32_t output,
                    std::vector<uint32_t> hash_ids) {
  Request request;
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  request.hash_ids = std::move(hash_ids);
  return request;
}

std::vector<TokenId> All(const TokenSource& source, const Trace& trace,
                         size_t request) {
  std::vector<TokenId> tokens(trace.requests[request].total_tokens());
  source.Fill(request, 0, absl::MakeSpan(tokens));
  return tokens;
}

// Two tokens are equal exactly if both are covered by hash ids and agree in
// (id, offset).
TEST(TokenSourceTest, EqualExactlyWhereTheTraceSaysSo) {
  Trace trace;
  trace.hash_block_tokens = 8;
  trace.distinct_hash_ids = 4;
  trace.requests = {MakeRequest(20, 5, {0, 1, 2}),
                    MakeRequest(24, 3, {0, 1, 3}), MakeRequest(10, 4, {}),
                    MakeRequest(10, 4, {}), MakeRequest(9, 0, {2, 2})};
  const absl::StatusOr<TokenSource> source = TokenSource::Create(trace);
  ASSERT_TRUE(source.ok());

  std::map<std::pair<uint32_t, uint32_t>, TokenId> of_hash;
  std::set<TokenId> values;
  for (size_t r = 0; r < trace.requests.size(); ++r) {
    const std::vector<TokenId> tokens = All(*source, trace, r);
    const Request& request = trace.requests[r];
    for (uint32_t at = 0; at < request.total_tokens(); ++at) {
      EXPECT_GE(tokens[at], 0);
      if (at < request.prompt_tokens && !request.hash_ids.empty()) {
        const auto [entry, is_new] = of_hash.emplace(
            std::pair(request.hash_ids[at / 8], at % 8), tokens[at]);
        EXPECT_EQ(entry->second, tokens[at]);
        EXPECT_EQ(is_new, values.insert(tokens[at]).second);
      } else {
        EXPECT_TRUE(values.insert(tokens[at]).second) << r << " " << at;
      }
    }
  }
}

TEST(TokenSourceTest, PiecesAgreeWithTheWhole) {
  Trace trace;
  trace.hash_block_tokens = 16;
  trace.distinct_hash_ids = 2;
  trace.requests = {MakeRequest(30, 20, {0, 1})};
  const absl::StatusOr<TokenSource> source = TokenSource::Create(trace);
  ASSERT_TRUE(source.ok());
  const std::vector<TokenId> whole = All(*source, trace, 0);
  for (uint32_t first = 0; first < 50; ++first) {
    std::vector<TokenId> piece(50 - first);
    source->Fill(0, first, absl::MakeSpan(piece));
    EXPECT_EQ(piece, std::vector<TokenId>(whole.begin() + first, whole.end()));
  }
}

TEST(TokenSourceTest, RefusesMoreTokensThanValues) {
  Trace trace;
  trace.name = "huge";
  for (int i = 0; i < 129; ++i) {
    trace.requests.push_back(MakeRequest(kMaxTraceTokens, 0, {}));
  }
  const absl::Status status = TokenSource::Create(trace).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--max_requests"), std::string::npos);
}

}  // namespace
}  // namespace paged_kv::tool
