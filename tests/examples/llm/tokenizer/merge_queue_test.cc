// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/merge_queue.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

using Rules = std::map<std::pair<int, int>, Merge<int, int>>;

absl::optional<Merge<int, int>> Find(const Rules& rules, int left, int right) {
  const auto found = rules.find({left, right});
  if (found == rules.end()) return absl::nullopt;
  return found->second;
}

// One merge after the other: the lowest order, the leftmost place.
std::vector<int> MergeNaively(const Rules& rules, std::vector<int> symbols) {
  while (true) {
    size_t best = symbols.size();
    int best_order = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto merge = Find(rules, symbols[i], symbols[i + 1]);
      if (merge && (best == symbols.size() || merge->order < best_order)) {
        best = i;
        best_order = merge->order;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = Find(rules, symbols[best], symbols[best + 1])->merged;
    symbols.erase(symbols.begin() + static_cast<long>(best) + 1);
  }
}

TEST(MergeQueueTest, EqualsOneMergeAfterTheOther) {
  std::mt19937_64 random(TestSeed(23));
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<uint64_t>(limit));
  };
  for (int round = 0; round < 3000; ++round) {
    const int letters = 2 + below(3);
    const int kinds = letters + below(12);
    Rules rules;
    for (int i = 0; i < kinds * 3; ++i) {
      // Orders repeat, so that ties are met.
      rules[{below(kinds), below(kinds)}] = {below(kinds), below(kinds)};
    }
    std::vector<int> symbols(static_cast<size_t>(below(40)));
    for (int& symbol : symbols) symbol = below(letters);
    const std::vector<int> expected = MergeNaively(rules, symbols);
    MergeSymbols<int, int>(
        [&](int left, int right) { return Find(rules, left, right); },
        &symbols);
    ASSERT_EQ(symbols, expected) << "round " << round;
  }
}

TEST(MergeQueueTest, LongRunsAreNotQuadratic) {
  // Doubling merges, as of runs of spaces: 0 0 -> 1, 1 1 -> 2 ...
  std::vector<int> symbols(1 << 20, 0);
  MergeSymbols<int, int>(
      [](int left, int right) -> absl::optional<Merge<int, int>> {
        if (left != right || left == 20) return absl::nullopt;
        return Merge<int, int>{left + 1, left};
      },
      &symbols);
  EXPECT_EQ(symbols, std::vector<int>{20});
}

}  // namespace
}  // namespace paged_kv::llm
