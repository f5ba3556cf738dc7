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
#include "paged_kv/chunk_stream.h"

namespace paged_kv::benchmarks {

class PagedCache {
 public:
  using Block = BlockId;
  using Prefix = internal::PrefixCursor;

  class Chunks {
   public:
    Chunks(const PagedCache& cache, const Prefix& prefix,
           absl::Span<const TokenId> tokens)
        : stream_(*cache.state_.index, tokens.data(), /*first=*/0,
                  static_cast<uint32_t>(tokens.size() / kBlockTokens),
                  cache.state_.index->TagOf(prefix.node), /*frames=*/{},
                  internal::ChunkStream::Use::kAllChunks) {}
    const internal::ChunkStream::Chunk& Next() { return stream_.Next(); }

   private:
    internal::ChunkStream stream_;
  };

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
  void Index(Prefix* prefix, Chunks* chunks, Block block) {
    const internal::ChunkStream::Chunk& chunk = chunks->Next();
    state_.pools[0]->SetFill(block, kBlockTokens, 0);
    PAGED_KV_CHECK(state_.index->FindOrAdd(chunk.tag, chunk.tokens,
                                           chunk.extras(), prefix));
    state_.index->Attach(prefix->node, /*place=*/0, block);
  }
  bool Find(Prefix* prefix, Chunks* chunks, Block* block) {
    const internal::ChunkStream::Chunk& chunk = chunks->Next();
    if (!state_.index->Find(chunk.tag, chunk.tokens, chunk.extras(), prefix)) {
      return false;
    }
    *block = state_.index->First(prefix->node, /*place=*/0);
    PAGED_KV_CHECK(*block != kNoBlock);  // no node without a block here
    state_.pools[0]->AddRef(*block);
    return true;
  }
  void Release(Block block) {
    ReleaseBlock(&state_, state_.pools[0].get(), block, kDefaultPriority);
  }
  uint32_t IdOf(Block block) const { return block.value(); }

 private:
  internal::CacheState state_;
};

class NaiveCache {
 public:
  using Block = NaivePrefixCache::BlockPtr;
  struct Prefix {
    uint64_t serial = 0;
  };

  class Chunks {
   public:
    Chunks(const NaiveCache&, const Prefix&, absl::Span<const TokenId> tokens)
        : rest_(tokens) {}
    absl::Span<const TokenId> Next() {
      const auto next = rest_.first(kBlockTokens);
      rest_.remove_prefix(kBlockTokens);
      return next;
    }

   private:
    absl::Span<const TokenId> rest_;
  };

  explicit NaiveCache(uint32_t blocks) : cache_(blocks) {}

  Block Take() { return cache_.Take(); }
  void Index(Prefix* prefix, Chunks* chunks, const Block& block) {
    cache_.Index(block, prefix->serial, chunks->Next());
    prefix->serial = block->serial;
  }
  bool Find(Prefix* prefix, Chunks* chunks, Block* block) {
    *block = cache_.Find(prefix->serial, chunks->Next());
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
