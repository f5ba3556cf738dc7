// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a serial replay finds in the cache, against the naive models.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/random.h"
#include "benchmarks/tool/replay_runner.h"
#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/naive_prefix_caches.h"
#include "tests/benchmarks/shared_traces.h"
#include "tests/support/sanitized.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<ReplaySummary> Replay(const Trace& trace, uint32_t block_tokens,
                                     uint32_t pool_blocks,
                                     uint32_t decode_step_tokens) {
  ReplayOptions options;
  options.block_tokens = block_tokens;
  options.pool_blocks = pool_blocks;
  options.decode_step_tokens = decode_step_tokens;
  Progress progress(nullptr);
  return RunReplay(trace, options, progress);
}

void ExpectSameHits(const ReplaySummary& replay, const NaiveHits& naive) {
  EXPECT_EQ(replay.result.prompt_tokens, naive.prompt_tokens);
  EXPECT_EQ(replay.result.hit_tokens, naive.hit_tokens);
  EXPECT_DOUBLE_EQ(replay.result.HitRate(),
                   static_cast<double>(naive.hit_tokens) /
                       static_cast<double>(naive.prompt_tokens));
  ASSERT_EQ(replay.result.outcomes.size(), naive.per_request.size());
  for (size_t i = 0; i < naive.per_request.size(); ++i) {
    ASSERT_EQ(replay.result.outcomes[i].hit_tokens, naive.per_request[i])
        << "request " << i;
  }
}

TEST(ReplayHitsTest, MooncakeUnboundedEqualsTheTrie) {
  PAGED_KV_NEEDS_TRACE(path, kMooncakeTrace);
  const NaiveTrace naive = ReadMooncake(path);
  const absl::StatusOr<Trace> trace = ReadTrace(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  for (const uint32_t block_tokens : {16u, 64u, 512u}) {
    if (kSanitized && block_tokens == 16) continue;
    SCOPED_TRACE(block_tokens);
    const auto replay = Replay(*trace, block_tokens, 0, 1u << 20);
    ASSERT_TRUE(replay.ok()) << replay.status();
    ExpectSameHits(*replay, EndlessTrie(naive, block_tokens));
    // With room for everything, the optimum is what is found.
    EXPECT_DOUBLE_EQ(*replay->belady_hit_rate, replay->result.HitRate());
  }
}

TEST(ReplayHitsTest, MooncakeBoundedEqualsTheNaiveLru) {
  PAGED_KV_NEEDS_TRACE(path, kMooncakeTrace);
  const NaiveTrace naive = ReadMooncake(path);
  const absl::StatusOr<Trace> trace = ReadTrace(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  double last = 0;
  for (const uint32_t blocks : {1000u, 10000u, 50000u}) {
    SCOPED_TRACE(blocks);
    const auto replay = Replay(*trace, 512, blocks, 1u << 20);
    ASSERT_TRUE(replay.ok()) << replay.status();
    ExpectSameHits(*replay, NaiveLru(naive, 512, blocks).Serve());
    EXPECT_GT(replay->result.evicted_blocks, 0u);
    EXPECT_GT(*replay->belady_hit_rate, replay->result.HitRate());
    EXPECT_GT(replay->result.HitRate(), last);
    last = replay->result.HitRate();
  }
}

// Short prompts over a few ids, so that prefixes meet and part all the time.
NaiveTrace RandomTrace(uint64_t seed) {
  Random random(seed);
  NaiveTrace trace;
  trace.id_tokens = 1 + random.Below(12);
  const uint32_t ids = 2 + random.Below(4);
  for (int i = 0; i < 300; ++i) {
    NaiveRequest r;
    r.prompt = 1 + random.Below(80);
    r.output = random.Chance(200) ? 0 : random.Below(20);
    if (!random.Chance(100)) {
      for (uint32_t at = 0; at < r.prompt; at += trace.id_tokens) {
        // The first id most of the time: long common prefixes.
        r.ids.push_back(random.Chance(700) ? 0 : random.Below(ids));
      }
    }
    trace.requests.push_back(r);
  }
  return trace;
}

Trace ToolTrace(const NaiveTrace& naive) {
  Trace trace;
  trace.hash_block_tokens = naive.id_tokens;
  for (const NaiveRequest& r : naive.requests) {
    Request request;
    request.prompt_tokens = r.prompt;
    request.output_tokens = r.output;
    request.hash_ids = r.ids;
    for (const uint32_t id : r.ids) {
      trace.distinct_hash_ids = std::max(trace.distinct_hash_ids, id + 1);
    }
    trace.requests.push_back(request);
  }
  return trace;
}

TEST(ReplayHitsTest, RandomTracesEqualTheNaiveLruInEveryPool) {
  uint64_t refused = 0, evicted = 0, hits = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed + 1000);
    const NaiveTrace naive = RandomTrace(seed);
    const Trace trace = ToolTrace(naive);
    const uint32_t block_tokens = 1 + random.Below(20);
    const uint32_t blocks = 1 + random.Below(160 / block_tokens + 4);
    const uint32_t step = 1 + random.Below(25);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << blocks
                                    << " blocks of " << block_tokens);
    const auto replay = Replay(trace, block_tokens, blocks, step);
    ASSERT_TRUE(replay.ok()) << replay.status();
    ExpectSameHits(*replay, NaiveLru(naive, block_tokens, blocks).Serve());
    EXPECT_GE(*replay->belady_hit_rate, replay->result.HitRate());
    refused += replay->result.NeverFits();
    evicted += replay->result.evicted_blocks;
    hits += replay->result.hit_tokens;
  }
  // The traces are worth something.
  EXPECT_GT(refused, 100u);
  EXPECT_GT(evicted, 10000u);
  EXPECT_GT(hits, 10000u);
}

TEST(ReplayHitsTest, RandomTracesEqualTheNaiveLruIfUnbounded) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const NaiveTrace naive = RandomTrace(seed);
    const uint32_t block_tokens = 1 + static_cast<uint32_t>(seed % 9);
    const auto replay = Replay(ToolTrace(naive), block_tokens, 0, 7);
    ASSERT_TRUE(replay.ok()) << replay.status();
    ExpectSameHits(*replay, NaiveLru(naive, block_tokens, 1u << 20).Serve());
    EXPECT_DOUBLE_EQ(*replay->belady_hit_rate, replay->result.HitRate());
  }
}

}  // namespace
}  // namespace paged_kv::tool
