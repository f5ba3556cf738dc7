// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The cache that the benchmarks measure against gives the same answers as the
// measured one, so that the two are compared at the same work.

#include "benchmarks/paged_kv/naive_prefix_cache.h"

#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "benchmarks/paged_kv/eviction_caches.h"
#include "benchmarks/paged_kv/eviction_stream.h"
#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::benchmarks {
namespace {

constexpr uint32_t kBlocks = 400;

TEST(NaivePrefixCacheTest, EvictsTheSameBlocksInTheMeasuredStream) {
  PagedCache paged(kBlocks);
  NaiveCache naive(kBlocks);
  EvictionStream<PagedCache> paged_stream(&paged, kBlocks);
  EvictionStream<NaiveCache> naive_stream(&naive, kBlocks);
  for (int document = 0; document < 100; ++document) {
    paged_stream.PrepareDocument();
    naive_stream.PrepareDocument();
    for (uint32_t i = 0; i < EvictionStream<PagedCache>::kChain; ++i) {
      paged_stream.Evict();
      naive_stream.Evict();
      ASSERT_EQ(paged_stream.evicted(), naive_stream.evicted())
          << "document " << document << ", block " << i;
    }
  }
}

// The blocks that hold a document, and how many of them were found.
struct Held {
  std::vector<uint32_t> ids;
  uint32_t hits = 0;
};

template <typename Cache>
class DocumentReader {
 public:
  DocumentReader() : cache_(kBlocks) {}

  // Takes what the cache has of `tokens`, makes the rest, lets go of it all,
  // last block first.
  Held Read(absl::Span<const TokenId> tokens) {
    Held held;
    std::vector<typename Cache::Block> blocks;
    typename Cache::Prefix prefix;
    typename Cache::Block block;
    typename Cache::Chunks known(cache_, prefix, tokens);
    while (blocks.size() * kBlockTokens < tokens.size() &&
           cache_.Find(&prefix, &known, &block)) {
      blocks.push_back(block);
    }
    held.hits = static_cast<uint32_t>(blocks.size());
    typename Cache::Chunks unknown(
        cache_, prefix, tokens.subspan(blocks.size() * kBlockTokens));
    while (blocks.size() * kBlockTokens < tokens.size()) {
      blocks.push_back(cache_.Take());
      cache_.Index(&prefix, &unknown, blocks.back());
    }
    for (size_t i = blocks.size(); i-- > 0;) cache_.Release(blocks[i]);
    for (const auto& b : blocks) held.ids.push_back(cache_.IdOf(b));
    return held;
  }

 private:
  Cache cache_;
};

TEST(NaivePrefixCacheTest, HitsAndEvictsTheSameBlocksOfRandomDocuments) {
  std::mt19937_64 random(TestSeed(1));
  DocumentReader<PagedCache> paged;
  DocumentReader<NaiveCache> naive;
  uint32_t hits = 0;
  uint32_t blocks = 0;
  for (int i = 0; i < 3000; ++i) {
    // 30 texts of up to 30 blocks do not fit, but the recent ones do; every
    // third ends in an own way.
    std::vector<TokenId> tokens((1 + random() % 30) * kBlockTokens);
    FillText(random() % 30, 0, absl::MakeSpan(tokens));
    if (i % 3 == 0) {
      FillText(1000 + static_cast<uint64_t>(i), 0,
               absl::MakeSpan(tokens).last(tokens.size() / 2));
    }
    const Held a = paged.Read(tokens);
    const Held b = naive.Read(tokens);
    ASSERT_EQ(a.hits, b.hits) << "document " << i;
    ASSERT_EQ(a.ids, b.ids) << "document " << i;
    hits += a.hits;
    blocks += static_cast<uint32_t>(a.ids.size());
  }
  EXPECT_GT(hits, blocks / 10);
  EXPECT_GT(blocks - hits, 2 * kBlocks) << "too few evictions to compare";
}

}  // namespace
}  // namespace paged_kv::benchmarks
