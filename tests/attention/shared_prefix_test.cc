// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/shared_prefix_internal.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "attention/paged_decode.h"
#include "gtest/gtest.h"
#include "tests/support/attention_problem.h"
#include "tests/support/attention_random.h"
#include "tests/support/sanitized.h"

namespace paged_kv::attention {
namespace {

using internal::FindSharedPrefixes;
using internal::kMinSharedTokens;
using internal::PartitionWork;
using internal::SequenceQueries;
using internal::SharedPrefix;
using internal::WorkItem;
using testing::AttentionProblem;
using testing::AttentionSpec;
using testing::Random;

constexpr int32_t kBlock = 64;

// Page tables given as lists of pages; every sequence decodes one token.
class Tables {
 public:
  explicit Tables(const std::vector<std::vector<int32_t>>& pages,
                  int32_t last_page_tokens = 1) {
    for (const std::vector<int32_t>& list : pages) {
      indices_.insert(indices_.end(), list.begin(), list.end());
      indptr_.push_back(static_cast<int32_t>(indices_.size()));
      last_.push_back(list.empty() ? 0 : last_page_tokens);
      first_.push_back(0);
      SequenceQueries query;
      query.sequence = static_cast<uint32_t>(queries_.size());
      query.num_queries = 1;
      query.first_query = query.sequence;
      query.num_tokens = table().SequenceTokens(queries_.size());
      query.first_position = query.num_tokens - 1;
      queries_.push_back(query);
    }
  }

  PageTable table() const {
    PageTable table;
    table.indptr = indptr_;
    table.page_indices = indices_;
    table.last_page_tokens = last_;
    table.first_token = first_;
    table.block_tokens = kBlock;
    return table;
  }
  std::vector<SequenceQueries>& queries() { return queries_; }
  std::vector<SharedPrefix> Find() const {
    return FindSharedPrefixes(table(), queries_);
  }

 private:
  std::vector<int32_t> indptr_ = {0}, indices_, last_, first_;
  std::vector<SequenceQueries> queries_;
};

using Members = std::vector<uint32_t>;

TEST(SharedPrefixTest, SequencesWithTheSamePagesAreAGroup) {
  Tables tables({{1, 2, 3, 4, 50},
                 {9, 8, 7, 6, 5, 51},
                 {1, 2, 3, 4, 52},
                 {1, 2, 3, 4, 53, 54}});
  const std::vector<SharedPrefix> groups = tables.Find();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].members, (Members{0, 2, 3}));
  EXPECT_EQ(groups[0].tokens, 4 * kBlock);
}

TEST(SharedPrefixTest, AShortPrefixOfAllDoesNotHideALongOneOfSome) {
  Tables tables({{1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 17, 18, 90},
                 {1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 17, 18, 91},
                 {1, 2, 3, 4, 21, 22, 23, 24, 25, 26, 27, 28, 92},
                 {1, 2, 3, 4, 21, 22, 23, 24, 25, 26, 27, 28, 93}});
  const std::vector<SharedPrefix> groups = tables.Find();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].members, (Members{0, 1}));
  EXPECT_EQ(groups[1].members, (Members{2, 3}));
  EXPECT_EQ(groups[0].tokens, 12 * kBlock);
}

TEST(SharedPrefixTest, WhatDoesNotPayIsLeftAlone) {
  static_assert(kMinSharedTokens == 4 * kBlock);
  EXPECT_TRUE(Tables({{1, 2, 3, 50}, {1, 2, 3, 51}}).Find().empty());
  EXPECT_TRUE(Tables({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}).Find().empty());
  EXPECT_TRUE(Tables({{}, {}, {1}}).Find().empty());
  EXPECT_TRUE(Tables({}).Find().empty());
}

TEST(SharedPrefixTest, APageThatMayFillUpIsNotShared) {
  // A fork: even the last, partial page is the same.
  Tables fork({{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}, kBlock - 1);
  ASSERT_EQ(fork.Find().size(), 1u);
  EXPECT_EQ(fork.Find()[0].tokens, 4 * kBlock);
  Tables full({{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}, kBlock);
  ASSERT_EQ(full.Find().size(), 1u);
  EXPECT_EQ(full.Find()[0].tokens, 5 * kBlock);
}

TEST(SharedPrefixTest, PromptsReadTheirOwnKeys) {
  Tables tables({{1, 2, 3, 4, 50}, {1, 2, 3, 4, 51}});
  tables.queries()[1].num_queries = 2;
  EXPECT_TRUE(tables.Find().empty());
}

// Pages as a random tree of prompts would have them.
std::vector<std::vector<int32_t>> RandomPages(Random* random) {
  int32_t next_page = 0;
  std::vector<std::vector<int32_t>> sequences(random->Between(1, 24));
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::vector<int32_t>& pages = sequences[i];
    if (i > 0 && random->Chance(70)) {
      const std::vector<int32_t>& parent =
          sequences[random->Between(0, static_cast<uint32_t>(i) - 1)];
      pages.assign(parent.begin(),
                   parent.begin() + random->Between(0, static_cast<uint32_t>(
                                                           parent.size())));
    }
    for (uint32_t n = random->Between(0, 8); n > 0; --n) {
      pages.push_back(next_page++);
    }
  }
  return sequences;
}

TEST(SharedPrefixTest, EveryRowSeesEveryKeyOnceAndFromItsOwnPages) {
  constexpr uint64_t kSeeds = kSanitized ? 60 : 300;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::vector<std::vector<int32_t>> pages = RandomPages(&random);
    Tables tables(pages, static_cast<int32_t>(random.Between(1, kBlock)));
    const std::vector<SharedPrefix> groups = tables.Find();
    const uint32_t group = random.Pick<uint32_t>({1, 7, 8, 32, 33, 71});
    const auto partition =
        PartitionWork(tables.queries(), groups, 2, group, {});

    // visits[row of q, head][position] of the keys, by the page read.
    std::vector<std::vector<std::vector<int>>> visits(pages.size());
    for (size_t i = 0; i < pages.size(); ++i) {
      const auto tokens = static_cast<size_t>(tables.queries()[i].num_tokens);
      visits[i].assign(group, std::vector<int>(tokens));
    }
    for (const WorkItem& item : partition.items) {
      for (uint32_t r = 0; r < item.num_rows; ++r) {
        const uint64_t row = item.first_row + r;
        const size_t query =
            item.first_shared < 0
                ? static_cast<size_t>(item.first_query)
                : static_cast<size_t>(
                      partition
                          .shared_queries[static_cast<size_t>(
                                              item.first_shared) +
                                          row / group]
                          .query);
        for (int64_t j = item.keys.begin; j < item.keys.end; ++j) {
          const auto page = static_cast<size_t>(j / kBlock);
          ASSERT_EQ(pages[query].at(page), pages[item.sequence].at(page));
          ++visits[query][row % group].at(static_cast<size_t>(j));
        }
      }
    }
    for (const auto& heads : visits) {
      for (const std::vector<int>& keys : heads) {
        for (const int count : keys) ASSERT_EQ(count, 1);
      }
    }
    // Every partial row is merged into one output exactly once.
    std::multiset<int64_t> merged;
    for (const internal::SplitRows& split : partition.splits) {
      for (uint32_t p = 0; p < split.num_parts; ++p) {
        for (uint32_t r = 0; r < split.rows.num_rows; ++r) {
          merged.insert(partition.parts[split.first_part + p] + r);
        }
      }
    }
    ASSERT_EQ(merged.size(), static_cast<size_t>(partition.partial_rows));
    ASSERT_EQ(std::set<int64_t>(merged.begin(), merged.end()).size(),
              merged.size());
  }
}

TEST(SharedPrefixTest, AttentionOverSharedPagesAgreesWithTheReference) {
  SerialFor serial;
  ThreadPool pool(3);
  constexpr uint64_t kSeeds = kSanitized ? 6 : 16;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    AttentionSpec spec;
    spec.shape.kv_heads = random.Between(1, 2);
    spec.shape.head_dim = random.Pick<uint32_t>({32, 40, 128});
    spec.shape.block_tokens = random.Pick<uint32_t>({16, 48, 128});
    spec.shape.dtype = random.Pick<DType>(
        {DType::kBF16, DType::kF32, DType::kInt8, DType::kBF16});
    spec.group = random.Pick<uint32_t>({1, 7, 32, 40});
    spec.decode = random.Chance(50);
    spec.seed = seed;
    const uint32_t shared_pages =
        random.Between(256, 700) / spec.shape.block_tokens + 1;
    const uint32_t shared = shared_pages * spec.shape.block_tokens;
    const uint32_t batch = random.Between(2, 12);
    for (uint32_t i = 0; i < batch; ++i) {
      const uint32_t own = random.Between(1, 2 * spec.shape.block_tokens);
      const uint32_t queries =
          spec.decode || random.Chance(70) ? 1 : random.Between(1, own);
      spec.sequences.push_back({queries, shared + own});
    }
    AttentionProblem problem(spec);
    for (uint32_t i = 1; i < batch; ++i) {
      if (random.Chance(80)) {
        problem.SharePages(i, 0, random.Between(1, shared_pages));
      }
    }
    const auto want = RunReference(problem, pool);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const Isa isa : SupportedIsas()) {
      SCOPED_TRACE(IsaName(isa));
      const auto got = RunKernel(problem, isa, pool);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(
          Compare(*want, *got, testing::ToleranceFor(isa, spec.shape.dtype)),
          "");
      const auto alone = RunKernel(problem, isa, serial);
      ASSERT_TRUE(alone.ok()) << alone.status();
      ASSERT_EQ(alone->out, got->out);
    }
  }
}

// A window that hides nothing rules sharing out as well, so it has to give the
// same bits as sharing turned off.
TEST(SharedPrefixTest, SharingCanBeTurnedOff) {
  AttentionSpec spec;
  spec.shape.kv_heads = 2;
  spec.shape.block_tokens = 16;
  spec.group = 7;
  spec.decode = true;
  spec.sequences.assign(6, {1, 400});
  AttentionProblem problem(spec);
  for (uint32_t i = 1; i < 6; ++i) problem.SharePages(i, 0, 20);
  SerialFor serial;
  const auto outputs_with = [&](const AttentionOptions& options) {
    std::vector<float> out(problem.num_rows() * spec.shape.VHeadDim());
    AttentionOutputs outputs;
    outputs.out = absl::MakeSpan(out);
    const absl::Status status =
        PagedDecode(problem.inputs(), options, outputs, serial);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  };
  AttentionOptions shared, apart, windowed;
  apart.share_prefixes = false;
  windowed.window = 1000;
  EXPECT_EQ(outputs_with(apart), outputs_with(windowed));
  EXPECT_NE(outputs_with(apart), outputs_with(shared));
}

}  // namespace
}  // namespace paged_kv::attention
