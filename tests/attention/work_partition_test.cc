// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "attention/shared_prefix_internal.h"
#include "attention/work_partition_internal.h"
#include "gtest/gtest.h"
#include "tests/support/attention_random.h"

namespace paged_kv::attention::internal {
namespace {

using attention::testing::Random;

SequenceQueries Queries(uint32_t sequence, int64_t queries, int64_t tokens,
                        int64_t first_query) {
  return {sequence, queries, first_query, tokens - queries, tokens};
}

bool Sees(const AttentionOptions& options, int64_t position, int64_t key) {
  if (options.causal && key > position) return false;
  return options.window == 0 || key > position - int64_t{options.window} ||
         key < int64_t{options.sink_tokens};
}

// How often each (sequence, row, key) is worked on.
using Visits = std::map<std::pair<uint32_t, uint64_t>, std::vector<int>>;

Visits CountVisits(const WorkPartition& partition,
                   const std::vector<SequenceQueries>& queries) {
  Visits visits;
  for (const WorkItem& item : partition.items) {
    EXPECT_GE(item.num_rows, 1u);
    EXPECT_LE(item.num_rows, kMaxItemRows);
    const auto sequence = std::find_if(
        queries.begin(), queries.end(),
        [&](const auto& q) { return q.sequence == item.sequence; });
    for (uint64_t r = 0; r < item.num_rows; ++r) {
      std::vector<int>& keys = visits[{item.sequence, item.first_row + r}];
      keys.resize(static_cast<size_t>(sequence->num_tokens));
      for (const KeyRange& range : {item.sinks, item.keys}) {
        for (int64_t j = range.begin; j < range.end; ++j) {
          ++keys.at(static_cast<size_t>(j));
        }
      }
    }
  }
  return visits;
}

void ExpectEveryKeyOnce(const std::vector<SequenceQueries>& queries,
                        uint32_t kv_heads, uint32_t group,
                        const AttentionOptions& options) {
  const WorkPartition partition =
      PartitionWork(queries, {}, kv_heads, group, options);
  const Visits visits = CountVisits(partition, queries);
  for (const SequenceQueries& sequence : queries) {
    for (int64_t r = 0; r < sequence.num_queries * group; ++r) {
      const auto found =
          visits.find({sequence.sequence, static_cast<uint64_t>(r)});
      ASSERT_NE(found, visits.end());
      const int64_t position = sequence.first_position + r / group;
      for (int64_t j = 0; j < sequence.num_tokens; ++j) {
        const int count = found->second[static_cast<size_t>(j)];
        ASSERT_LE(count, 1) << "row " << r << " key " << j;
        if (Sees(options, position, j)) {
          ASSERT_EQ(count, 1) << "row " << r << " key " << j;
        }
      }
    }
  }
}

TEST(WorkPartitionTest, EveryKeyThatARowSeesIsVisitedOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(seed);
    AttentionOptions options;
    options.causal = random.Chance(80);
    if (random.Chance(50)) options.window = random.Between(1, 900);
    if (random.Chance(50)) options.sink_tokens = random.Between(1, 700);
    const uint32_t group = random.Pick<uint32_t>({1, 4, 7, 71});
    std::vector<SequenceQueries> queries;
    int64_t first_query = 0;
    for (uint32_t i = 0; i < random.Between(1, 3); ++i) {
      const uint32_t tokens = random.Between(1, 2500);
      const uint32_t num = random.Between(1, std::min(tokens, 20u));
      queries.push_back(Queries(i, num, tokens, first_query));
      first_query += num;
    }
    ExpectEveryKeyOnce(queries, random.Between(1, 4), group, options);
  }
}

TEST(WorkPartitionTest, ALongDecodeIsSplitEvenly) {
  const WorkPartition partition =
      PartitionWork({Queries(0, 1, 100'000, 0)}, {}, 4, 7, {});
  ASSERT_EQ(partition.splits.size(), 1u);
  EXPECT_GE(partition.items.size() * 4, 60u);
  EXPECT_EQ(partition.splits[0].num_parts, partition.items.size());
  EXPECT_EQ(partition.partial_rows,
            7 * static_cast<int64_t>(partition.items.size()));
  for (const WorkItem& item : partition.items) {
    EXPECT_LE(item.keys.size(), partition.items[0].keys.size());
    EXPECT_EQ(item.keys.begin % kChunkTokens, 0);
  }
}

TEST(WorkPartitionTest, ManySequencesAreNotSplit) {
  std::vector<SequenceQueries> queries;
  for (uint32_t i = 0; i < 64; ++i) queries.push_back(Queries(i, 1, 4096, i));
  const WorkPartition partition = PartitionWork(queries, {}, 4, 7, {});
  EXPECT_TRUE(partition.splits.empty());
  EXPECT_EQ(partition.items.size(), 64u);
}

TEST(WorkPartitionTest, PartialRowsOfASplitFollowEachOtherInKeyOrder) {
  const WorkPartition partition = PartitionWork(
      {Queries(0, 3, 5000, 0), Queries(1, 1, 9000, 3)}, {}, 1, 8, {});
  ASSERT_EQ(partition.splits.size(), 2u);
  for (const SplitRows& split : partition.splits) {
    std::vector<WorkItem> pieces;
    for (const WorkItem& item : partition.items) {
      if (item.sequence == split.rows.sequence) pieces.push_back(item);
    }
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
      return a.keys.begin < b.keys.begin;
    });
    ASSERT_EQ(pieces.size(), split.num_parts);
    for (size_t s = 0; s < pieces.size(); ++s) {
      EXPECT_EQ(pieces[s].partial_row, partition.parts[split.first_part + s]);
    }
  }
}

TEST(WorkPartitionTest, ASequenceWithoutTokensGetsAnItemWithoutKeys) {
  const WorkPartition partition =
      PartitionWork({{0, 1, 0, -1, 0}}, {}, 1, 4, AttentionOptions());
  ASSERT_EQ(partition.items.size(), 1u);
  EXPECT_EQ(partition.items[0].keys.size(), 0);
  EXPECT_EQ(partition.items[0].sinks.size(), 0);
}

}  // namespace
}  // namespace paged_kv::attention::internal
