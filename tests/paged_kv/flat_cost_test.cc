// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a block costs in memory, and that the work per block does not depend on
// the number of blocks. Instructions are counted by
// scripts/measure_flat_cost.py and times by the benchmarks; these tests need
// neither.

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <vector>

#include <xxhash.h>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv {
namespace {

constexpr uint32_t kBlockTokens = 16;

KvCacheOptions Options(uint32_t blocks) {
  KvCacheOptions options;
  LayerGroup group;
  group.shape.block_tokens = kBlockTokens;
  options.groups = {group};
  options.host_blocks = BlockCount(blocks);
  options.max_sequences = 4;
  options.max_tokens_per_sequence = 2048;
  options.hash_seed = 1;
  return options;
}

std::unique_ptr<KvCacheManager> Make(const KvCacheOptions& options) {
  auto cache = KvCacheManager::Create(options);
  EXPECT_TRUE(cache.ok()) << cache.status();
  return cache.ok() ? *std::move(cache) : nullptr;
}

// Admits, retires and frees a prompt of `blocks` blocks that nothing is cached
// of, as long as `first` grows by as many tokens each time.
void Pass(KvCacheManager* cache, uint32_t blocks, TokenId first) {
  std::vector<TokenId> prompt(size_t{blocks} * kBlockTokens);
  std::iota(prompt.begin(), prompt.end(), first);
  const auto admission = cache->Allocate(prompt);
  ASSERT_TRUE(admission.ok()) << admission.status();
  ASSERT_TRUE(cache->Retire(admission->step).ok());
  ASSERT_TRUE(cache->Free(admission->id).ok());
}

// Makes every block of the cache hold content; returns the next unused token.
TokenId Fill(KvCacheManager* cache) {
  constexpr uint32_t kPromptBlocks = 100;
  const uint32_t blocks = cache->PoolBlocks(GroupId(0)).value();
  TokenId first = 0;
  for (uint32_t i = 0; i <= blocks / kPromptBlocks; ++i) {
    Pass(cache, kPromptBlocks, first);
    first += kPromptBlocks * kBlockTokens;
  }
  EXPECT_EQ(cache->Stats().pools[0].free, BlockCount(0));
  return first;
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

TEST(FlatCostTest, MetadataIsAtMost64BytesPerBlock) {
  for (uint32_t blocks : {1'000u, 100'000u, 10'000'000u}) {
    const auto cache = Make(Options(blocks));
    ASSERT_NE(cache, nullptr);
    EXPECT_LE(cache->MetadataBytesPerBlock(), 64.0) << blocks << " blocks";
  }
}

// The same from outside: all memory that a full cache occupies.
TEST(FlatCostTest, NothingElseGrowsWithTheBlocks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  constexpr uint32_t kBlocks = 1u << 20;
  const int64_t before = ResidentBytes();
  const auto cache = Make(Options(kBlocks));
  ASSERT_NE(cache, nullptr);
  Fill(cache.get());
  const int64_t grown = ResidentBytes() - before;
  constexpr int64_t kPerBlock = 64 + kBlockTokens * sizeof(TokenId);
  // A huge page here and there, for arrays of which little is used.
  constexpr int64_t kSlack = 16 << 20;
  EXPECT_GE(grown, kBlocks * kPerBlock * 3 / 4) << "is it still measured?";
  EXPECT_LE(grown, kBlocks * kPerBlock + kSlack);
}

TEST(FlatCostTest, MakingALargeCacheTouchesNoBlock) {
  const int64_t before = ResidentBytes();
  KvCacheOptions options = Options(10'000'000);
  options.event_capacity = 1u << 24;  // 1.3 GB if they were made at once
  const auto cache = Make(options);
  ASSERT_NE(cache, nullptr);
  EXPECT_LE(ResidentBytes() - before, 16 << 20);
}

// ---- Work per evicting allocation, counted at the pluggable parts ----

uint64_t policy_calls = 0;
uint64_t hash_calls = 0;

class CountingPolicy final : public EvictionPolicy {
 public:
  explicit CountingPolicy(BlockLinks links) : lru_(MakeLruPolicy(links)) {}
  void Insert(BlockId block, uint32_t priority, bool was_hit) override {
    ++policy_calls;
    lru_->Insert(block, priority, was_hit);
  }
  void Remove(BlockId block) override {
    ++policy_calls;
    lru_->Remove(block);
  }
  BlockId First() const override {
    ++policy_calls;
    return lru_->First();
  }
  BlockId Next(BlockId block) const override {
    ++policy_calls;
    return lru_->Next(block);
  }

 private:
  std::unique_ptr<EvictionPolicy> lru_;
};

uint64_t CountingHash(uint64_t seed, const void* data, size_t bytes) {
  ++hash_calls;
  return XXH3_64bits_withSeed(data, bytes, seed);
}

struct Work {
  uint64_t policy_calls;
  uint64_t hash_calls;
};

// What `passes` prompts of 8 blocks, each evicting 8, take in a full pool.
Work WorkInPoolOf(uint32_t blocks, int passes) {
  constexpr uint32_t kPromptBlocks = 8;
  KvCacheOptions options = Options(blocks);
  options.eviction = [](BlockLinks links) -> std::unique_ptr<EvictionPolicy> {
    return std::make_unique<CountingPolicy>(links);
  };
  options.hash = &CountingHash;
  const auto cache = Make(options);
  if (cache == nullptr) return {};
  TokenId first = Fill(cache.get());
  const uint64_t evicted_before = cache->Stats().blocks_evicted;
  policy_calls = 0;
  hash_calls = 0;
  for (int i = 0; i < passes; ++i) {
    Pass(cache.get(), kPromptBlocks, first);
    first += kPromptBlocks * kBlockTokens;
  }
  const Work work = {policy_calls, hash_calls};
  EXPECT_EQ(cache->Stats().blocks_evicted - evicted_before,
            kPromptBlocks * static_cast<uint64_t>(passes));
  return work;
}

TEST(FlatCostTest, EvictionAsksPolicyAndHashEquallyOftenInEveryPool) {
  constexpr int kPasses = 50;
  const Work small = WorkInPoolOf(1'000, kPasses);
  EXPECT_GT(small.policy_calls, 0u);
  EXPECT_GT(small.hash_calls, 0u);
  for (uint32_t blocks : {10'000u, 100'000u, 1'000'000u}) {
    const Work large = WorkInPoolOf(blocks, kPasses);
    EXPECT_EQ(large.policy_calls, small.policy_calls) << blocks << " blocks";
    EXPECT_EQ(large.hash_calls, small.hash_calls) << blocks << " blocks";
  }
}

}  // namespace
}  // namespace paged_kv
