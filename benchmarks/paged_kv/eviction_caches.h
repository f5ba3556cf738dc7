// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// PagedKV's pool and index, and the naive cache, as EvictionStream sees them.

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_CACHES_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_CACHES_H_

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/naive_prefix_cache.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {

class PagedCache {
 public:
  using Block = BlockId;
  using Prefix = internal::PrefixCursor;

  explicit PagedCache(uint32_t blocks) {
    KvCacheOptions options;
    LayerGroup group;
    group.shape.block_tokens = kBlockTokens;
    options.groups = {group};
    options.host_blocks = BlockCount(blocks);
    options.max_sequences = 2;
    options.hash_seed = 1;
    PAGED_KV_CHECK(MakeState(options, &state_).ok());
  }

  Block Take() { return TakeBlock(&state_, state_.pools[0].get()); }
  void Expect(const Prefix& prefix, absl::Span<const TokenId> tokens) {
    const internal::PrefixIndex& index = *state_.index;
    tag_ = index.ChunkTag(index.TagOf(prefix.node), tokens.data(), {});
    index.Prefetch(tag_);
    expected_ = tokens.data();
  }
  void Index(Prefix* prefix, absl::Span<const TokenId> tokens, Block block) {
    internal::PrefixIndex& index = *state_.index;
    if (expected_ != tokens.data()) Expect(*prefix, tokens);
    expected_ = nullptr;
    state_.pools[0]->SetFill(block, kBlockTokens, 0);
    PAGED_KV_CHECK(index.FindOrAdd(tag_, tokens.data(), {}, prefix));
    index.Attach(prefix->node, /*place=*/0, block);
  }
  bool Find(Prefix* prefix, absl::Span<const TokenId> tokens, Block* block) {
    internal::PrefixIndex& index = *state_.index;
    Expect(*prefix, tokens);
    expected_ = nullptr;
    if (!index.Find(tag_, tokens.data(), {}, prefix)) return false;
    *block = index.First(prefix->node, /*place=*/0);
    // A node may outlive its block; its content has to be made again.
    if (*block == kNoBlock) return false;
    state_.pools[0]->AddRef(*block);
    return true;
  }
  void Release(Block block) {
    ReleaseBlock(&state_, state_.pools[0].get(), block, kDefaultPriority);
  }
  uint32_t IdOf(Block block) const { return block.value(); }

  const internal::CacheState& state() const { return state_; }

 private:
  internal::CacheState state_;
  uint32_t tag_ = 0;  // of the tokens at expected_
  const TokenId* expected_ = nullptr;
};

class NaiveCache {
 public:
  using Block = NaivePrefixCache::BlockPtr;
  struct Prefix {
    uint64_t serial = 0;
  };

  explicit NaiveCache(uint32_t blocks) : cache_(blocks) {}

  Block Take() { return cache_.Take(); }
  void Expect(const Prefix&, absl::Span<const TokenId>) {}
  void Index(Prefix* prefix, absl::Span<const TokenId> tokens,
             const Block& block) {
    cache_.Index(block, prefix->serial, tokens);
    prefix->serial = block->serial;
  }
  bool Find(Prefix* prefix, absl::Span<const TokenId> tokens, Block* block) {
    *block = cache_.Find(prefix->serial, tokens);
    if (*block == nullptr) return false;
    prefix->serial = (*block)->serial;
    return true;
  }
  void Release(const Block& block) { cache_.Release(block); }
  uint32_t IdOf(const Block& block) const { return block->id; }

 private:
  NaivePrefixCache cache_;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_CACHES_H_
