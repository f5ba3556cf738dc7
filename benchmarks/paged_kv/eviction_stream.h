// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
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
// `Cache` has the types Block (a handle) and Prefix (of a chain, made empty)
// and the calls
//   Block Take();                                 // held, without content
//   void Expect(prefix, tokens);                  // the next Index(): a hint
//   void Index(Prefix*, tokens, const Block&);    // extends the prefix
//   bool Find(Prefix*, tokens, Block*);           // holds, if it is there
//   void Release(const Block&);
//   uint32_t IdOf(const Block&);
template <typename Cache>
class EvictionStream {
 public:
  static constexpr uint32_t kChain = 8;
  using Block = typename Cache::Block;
  using Prefix = typename Cache::Prefix;

  // Fills `cache` (borrowed) with documents. Neither the order of eviction nor
  // the places in the index follow the order of block ids.
  // REQUIRES: `blocks` is a multiple of kChain, and all of them are free.
  EvictionStream(Cache* cache, uint32_t blocks) : cache_(cache) {
    PAGED_KV_CHECK(blocks % kChain == 0 && blocks >= 4 * kChain);
    const uint32_t documents = blocks / kChain;
    std::mt19937_64 random(1);
    std::vector<Block> all;
    for (uint32_t i = 0; i < blocks; ++i) all.push_back(cache_->Take());
    std::shuffle(all.begin(), all.end(), random);
    std::vector<uint32_t> order(documents);
    std::iota(order.begin(), order.end(), 0u);
    std::vector<Prefix> prefixes(documents);
    for (uint32_t chunk = 0; chunk < kChain; ++chunk) {
      std::shuffle(order.begin(), order.end(), random);
      for (uint32_t document : order) {
        TokenId tokens[kBlockTokens];
        FillText(document, chunk * kBlockTokens, absl::MakeSpan(tokens));
        cache_->Index(&prefixes[document], tokens,
                      all[document * kChain + chunk]);
      }
    }
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t document : order) {
      for (uint32_t chunk = kChain; chunk-- > 0;) {
        cache_->Release(all[document * kChain + chunk]);
      }
    }
    next_ = uint64_t{documents} * kChain;
  }

  // Makes the tokens of the next `count` operations.
  void Prepare(uint32_t count) {
    tokens_.resize(size_t{count} * kBlockTokens);
    position_ = 0;
    for (uint32_t i = 0; i < count; ++i) {
      FillText((next_ + i) / kChain,
               static_cast<uint32_t>((next_ + i) % kChain) * kBlockTokens,
               absl::MakeSpan(tokens_).subspan(size_t{i} * kBlockTokens,
                                               kBlockTokens));
    }
  }

  // The measured operation. REQUIRES: prepared.
  void Evict() {
    const uint32_t chunk = next_ % kChain;
    std::array<Block, kChain>& held = held_[next_ / kChain % 2];
    std::array<Block, kChain>& before = held_[(next_ / kChain + 1) % 2];
    if (chunk == 0) prefix_ = Prefix();
    const auto tokens = absl::MakeConstSpan(tokens_).subspan(
        position_ * kBlockTokens, kBlockTokens);
    cache_->Expect(prefix_, tokens);
    held[chunk] = cache_->Take();
    cache_->Index(&prefix_, tokens, held[chunk]);
    if (warm_) cache_->Release(before[kChain - 1 - chunk]);
    warm_ = warm_ || chunk == kChain - 1;
    evicted_ = evicted_ * 0x9e3779b97f4a7c15u + cache_->IdOf(held[chunk]);
    ++position_;
    ++next_;
  }

  uint64_t operations() const { return next_; }
  // Equal for caches that have evicted the same blocks in the same order.
  uint64_t evicted() const { return evicted_; }

 private:
  Cache* cache_;
  uint64_t next_ = 0;  // document * kChain + chunk
  std::vector<TokenId> tokens_;
  size_t position_ = 0;
  Prefix prefix_;
  std::array<Block, kChain> held_[2];
  bool warm_ = false;  // there is a document before
  uint64_t evicted_ = 0;
};

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_EVICTION_STREAM_H_
