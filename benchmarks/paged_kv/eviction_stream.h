// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "benchmarks/paged_kv/cost_case.h"
#include "benchmarks/paged_kv/token_content.h"
#include "paged_kv/check.h"
#include "paged_kv/types.h"

namespace paged_kv::benchmarks {

// A stream of documents of kChain blocks through a full cache. Each operation
// takes one block, which evicts one, and gives it the next block of the newest
// document; it releases one block of the document before, last block first.
//
// `Cache` has the types
//   Block    a handle
//   Prefix   names what a chain holds; default-made: nothing
//   Chunks   (const Cache&, const Prefix&, tokens): the blocks of tokens that
//            follow a prefix, one after the other; Next() gives the next
// and the calls
//   Block Take();                               // held, without content
//   void Index(Prefix*, Chunks*, const Block&); // the prefix grows by a block
//   bool Find(Prefix*, Chunks*, Block*);        // likewise; holds what it
//   finds void Release(const Block&); uint32_t IdOf(const Block&);
template <typename Cache>
class EvictionStream {
 public:
  static constexpr uint32_t kChain = 40;
  using Block = typename Cache::Block;
  using Prefix = typename Cache::Prefix;
  using Chunks = typename Cache::Chunks;

  // Fills `cache` (borrowed) with documents. Neither the order of eviction nor
  // the places in the index follow the order of block ids.
  // REQUIRES: `blocks` is a multiple of kChain, and all of them are free.
  EvictionStream(Cache* cache, uint32_t blocks)
      : cache_(cache), tokens_(kChain * kBlockTokens) {
    PAGED_KV_CHECK(blocks % kChain == 0 && blocks >= 4 * kChain);
    std::mt19937_64 random(1);
    std::vector<Block> all;
    for (uint32_t i = 0; i < blocks; ++i) all.push_back(cache_->Take());
    std::shuffle(all.begin(), all.end(), random);
    const uint32_t documents = blocks / kChain;
    std::vector<uint32_t> order(documents);
    std::iota(order.begin(), order.end(), 0u);
    std::vector<Prefix> prefixes(documents);
    const auto tokens = absl::MakeSpan(tokens_).first(kBlockTokens);
    for (uint32_t chunk = 0; chunk < kChain; ++chunk) {
      std::shuffle(order.begin(), order.end(), random);
      for (uint32_t document : order) {
        FillText(document, chunk * kBlockTokens, tokens);
        Chunks chunks(*cache_, prefixes[document], tokens);
        cache_->Index(&prefixes[document], &chunks,
                      all[document * kChain + chunk]);
      }
    }
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t document : order) {
      for (uint32_t chunk = kChain; chunk-- > 0;) {
        cache_->Release(all[document * kChain + chunk]);
      }
    }
    next_document_ = documents;
  }

  // Makes the tokens of the next kChain operations.
  void PrepareDocument() {
    FillText(next_document_++, 0, absl::MakeSpan(tokens_));
    chunk_ = 0;
  }

  // The measured operation. REQUIRES: at most kChain times after
  // PrepareDocument(), and all of them before the next.
  void Evict() {
    if (chunk_ == 0) {
      prefix_ = Prefix();
      chunks_.emplace(*cache_, prefix_, tokens_);
      std::swap(held_, before_);
    }
    Block& block = held_[chunk_];
    block = cache_->Take();
    cache_->Index(&prefix_, &*chunks_, block);
    evicted_ = evicted_ * 0x9e3779b97f4a7c15u + cache_->IdOf(block);
    if (warm_) cache_->Release(before_[kChain - 1 - chunk_]);
    if (++chunk_ == kChain) warm_ = true;
  }

  // Equal for caches that have evicted the same blocks in the same order.
  uint64_t evicted() const { return evicted_; }

 private:
  Cache* cache_;
  uint64_t next_document_ = 0;
  std::vector<TokenId> tokens_;  // [kChain * kBlockTokens]
  uint32_t chunk_ = 0;           // of the newest document
  Prefix prefix_;
  std::optional<Chunks> chunks_;
  std::array<Block, kChain> held_;    // the newest document
  std::array<Block, kChain> before_;  // the one before it
  bool warm_ = false;                 // there is one before it
  uint64_t evicted_ = 0;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_
