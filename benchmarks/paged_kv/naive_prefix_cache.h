// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_NAIVE_PREFIX_CACHE_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_NAIVE_PREFIX_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "absl/types/span.h"
#include "paged_kv/check.h"
#include "paged_kv/types.h"

namespace paged_kv::benchmarks {

// A prefix cache with LRU eviction as one writes it first: std::unordered_map
// from (parent, tokens) to blocks, std::list for the order of eviction,
// std::shared_ptr for who owns what. The same answers as PagedKV's pool and
// index for one layer group, without slot accounting, windows or extras.
//
// Thread safety: thread-compatible.
class NaivePrefixCache {
 public:
  struct Key {
    uint64_t parent = 0;  // serial of the parent's content; 0: no parent
    std::vector<TokenId> tokens;
    bool operator==(const Key& other) const {
      return parent == other.parent && tokens == other.tokens;
    }
  };
  struct Block {
    uint32_t id = 0;
    uint32_t holders = 0;
    uint64_t serial = 0;  // names the content; 0: none
    Key key;
    std::list<std::shared_ptr<Block>>::iterator place;  // if without holders
  };
  using BlockPtr = std::shared_ptr<Block>;

  explicit NaivePrefixCache(uint32_t blocks) {
    for (uint32_t i = 0; i < blocks; ++i) {
      auto block = std::make_shared<Block>();
      block->id = i;
      free_.push_back(std::move(block));
    }
  }

  // The block with `tokens` behind `parent`, held; null if there is none.
  BlockPtr Find(uint64_t parent, absl::Span<const TokenId> tokens) {
    const auto found = index_.find(MakeKey(parent, tokens));
    if (found == index_.end()) return nullptr;
    BlockPtr block = found->second;
    if (block->holders++ == 0) evictable_.erase(block->place);
    return block;
  }

  // An empty block, held; the least recently used gives way if none is free.
  BlockPtr Take() {
    BlockPtr block;
    if (!free_.empty()) {
      block = std::move(free_.front());
      free_.pop_front();
    } else {
      PAGED_KV_CHECK(!evictable_.empty());
      block = std::move(evictable_.front());
      evictable_.pop_front();
      index_.erase(block->key);
      block->serial = 0;
    }
    block->holders = 1;
    return block;
  }

  // Makes a held block findable. REQUIRES: the content is not in the cache.
  void Index(const BlockPtr& block, uint64_t parent,
             absl::Span<const TokenId> tokens) {
    block->key = MakeKey(parent, tokens);
    block->serial = ++last_serial_;
    PAGED_KV_CHECK(index_.emplace(block->key, block).second);
  }

  // REQUIRES: indexed.
  void Release(const BlockPtr& block) {
    if (--block->holders > 0) return;
    evictable_.push_back(block);
    block->place = std::prev(evictable_.end());
  }

 private:
  static Key MakeKey(uint64_t parent, absl::Span<const TokenId> tokens) {
    return {parent, std::vector<TokenId>(tokens.begin(), tokens.end())};
  }
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return XXH3_64bits_withSeed(
          key.tokens.data(), key.tokens.size() * sizeof(TokenId), key.parent);
    }
  };

  std::list<BlockPtr> free_;
  std::list<BlockPtr> evictable_;  // least recently used first
  std::unordered_map<Key, BlockPtr, KeyHash> index_;
  uint64_t last_serial_ = 0;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_NAIVE_PREFIX_CACHE_H_
