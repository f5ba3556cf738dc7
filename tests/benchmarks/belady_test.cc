// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/belady.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "benchmarks/tool/random.h"
#include "benchmarks/tool/trace.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {
namespace {

Request MakeRequest(uint32_t prompt, std::vector<uint32_t> ids) {
  Request request;
  request.prompt_tokens = prompt;
  request.hash_ids = std::move(ids);
  return request;
}

uint64_t Hits(const Trace& trace, uint32_t block_tokens, uint64_t blocks) {
  return BeladyHitTokens(trace, std::vector<bool>(trace.requests.size(), true),
                         block_tokens, blocks);
}

// One block per request: the textbook's string of page references.
TEST(BeladyTest, TextbookReferences) {
  Trace trace;
  trace.hash_block_tokens = 1;
  // Two tokens each, so that the first one may be found.
  for (const uint32_t page :
       {7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1}) {
    trace.requests.push_back(MakeRequest(
        2, {page, 100 + static_cast<uint32_t>(trace.requests.size())}));
  }
  trace.distinct_hash_ids = 200;
  // Three frames: the textbook counts 9 faults of 20 where every page has to
  // be taken in. Passing one by (4, which never comes back) saves another.
  EXPECT_EQ(Hits(trace, 1, 3), 12u);
  EXPECT_EQ(Hits(trace, 1, 0), 0u);
  EXPECT_EQ(Hits(trace, 1, 6), 14u);  // 20 less the 6 first ones
}

TEST(BeladyTest, LastTokenIsAlwaysComputed) {
  Trace trace;
  trace.hash_block_tokens = 4;
  trace.distinct_hash_ids = 2;
  trace.requests = {MakeRequest(8, {0, 1}), MakeRequest(8, {0, 1}),
                    MakeRequest(8, {0, 1})};
  EXPECT_EQ(Hits(trace, 4, 10), 8u);  // one block of two, twice
  EXPECT_EQ(Hits(trace, 8, 10), 0u);
  EXPECT_EQ(Hits(trace, 1, 100), 14u);
}

// Every way to keep or drop blocks, tried out.
class Exhaustive {
 public:
  Exhaustive(std::vector<uint32_t> uses, std::vector<bool> can_hit,
             size_t capacity)
      : uses_(std::move(uses)),
        can_hit_(std::move(can_hit)),
        capacity_(capacity) {}

  uint64_t Best(size_t at = 0, const std::set<uint32_t>& cache = {}) {
    if (at == uses_.size()) return 0;
    const auto key = std::pair(at, cache);
    if (const auto it = known_.find(key); it != known_.end()) {
      return it->second;
    }
    const uint32_t block = uses_[at];
    const uint64_t hit = can_hit_[at] && cache.count(block) != 0 ? 1 : 0;
    std::set<uint32_t> with = cache;
    with.insert(block);
    uint64_t best = Best(at + 1, cache);  // as it was
    if (with.size() <= capacity_) {
      best = std::max(best, Best(at + 1, with));
    } else {
      for (const uint32_t victim : cache) {
        std::set<uint32_t> next = with;
        next.erase(victim);
        best = std::max(best, Best(at + 1, next));
      }
    }
    return known_[key] = hit + best;
  }

 private:
  const std::vector<uint32_t> uses_;
  const std::vector<bool> can_hit_;
  const size_t capacity_;
  std::map<std::pair<size_t, std::set<uint32_t>>, uint64_t> known_;
};

TEST(BeladyTest, NoOtherChoiceFindsMore) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Trace trace;
    trace.hash_block_tokens = 1;
    trace.distinct_hash_ids = 3;
    std::map<std::vector<uint32_t>, uint32_t> names;  // of prefixes
    std::vector<uint32_t> uses;
    std::vector<bool> can_hit;
    for (int r = 0; r < 7; ++r) {
      std::vector<uint32_t> ids;
      const uint32_t prompt = 1 + random.Below(4);
      std::vector<uint32_t> prefix;
      for (uint32_t i = 0; i < prompt; ++i) {
        ids.push_back(random.Below(3) / 2);
        prefix.push_back(ids.back());
        uses.push_back(
            names.emplace(prefix, static_cast<uint32_t>(names.size()))
                .first->second);
        can_hit.push_back(i + 1 < prompt);
      }
      trace.requests.push_back(MakeRequest(prompt, ids));
    }
    for (size_t capacity = 0; capacity <= 4; ++capacity) {
      EXPECT_EQ(Hits(trace, 1, capacity),
                Exhaustive(uses, can_hit, capacity).Best())
          << "seed " << seed << ", capacity " << capacity;
    }
  }
}

TEST(BeladyTest, RefusedRequestsAndPromptsWithoutIdsCountForNothing) {
  Trace trace;
  trace.hash_block_tokens = 1;
  trace.distinct_hash_ids = 2;
  trace.requests = {MakeRequest(2, {0, 1}), MakeRequest(2, {}),
                    MakeRequest(2, {0, 1})};
  EXPECT_EQ(Hits(trace, 1, 5), 1u);
  EXPECT_EQ(BeladyHitTokens(trace, {false, true, true}, 1, 5), 0u);
}

}  // namespace
}  // namespace paged_kv::tool
