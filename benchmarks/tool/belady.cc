// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/belady.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>
#include <utility>

#include "benchmarks/tool/prompt_trie.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

// One full block of one prompt.
struct Use {
  uint32_t block = 0;          // equal blocks behind equal prefixes are equal
  uint32_t next_use = kNever;  // of the block, if that can hit; a Use's index
  bool can_hit = false;        // false: its last token has to be computed
};

// The uses of all prompts in the order of serving. A block is named by the
// hash ids up to its last token and its place; a prompt without hash ids is
// like no other and is left out.
std::vector<Use> ListUses(const Trace& trace, const std::vector<bool>& served,
                          uint32_t block_tokens, uint32_t* blocks) {
  PromptTrie paths;
  PromptTrie names;
  std::vector<Use> uses;
  for (size_t r = 0; r < trace.requests.size(); ++r) {
    const Request& request = trace.requests[r];
    if (!served[r] || request.hash_ids.empty()) continue;
    const uint32_t full = request.prompt_tokens / block_tokens;
    const uint32_t can_hit = (request.prompt_tokens - 1) / block_tokens;
    uint32_t path = PromptTrie::kRoot;
    uint32_t ids = 0;
    for (uint32_t i = 0; i < full; ++i) {
      const uint32_t last = (i + 1) * block_tokens - 1;
      for (; ids <= last / trace.hash_block_tokens; ++ids) {
        path = paths.Child(path, request.hash_ids[ids]).first;
      }
      const uint32_t name = names.Child(path, i).first;
      *blocks = std::max(*blocks, name + 1);
      uses.push_back({name, kNever, i < can_hit});
    }
  }
  return uses;
}

// A use that cannot hit brings the block back in any case, so it is no reason
// to keep it until then.
void LinkNextUses(uint32_t blocks, std::vector<Use>& uses) {
  PAGED_KV_CHECK(uses.size() < kNever);
  std::vector<uint32_t> next(blocks, kNever);
  for (size_t i = uses.size(); i-- > 0;) {
    uses[i].next_use = next[uses[i].block];
    next[uses[i].block] = uses[i].can_hit ? static_cast<uint32_t>(i) : kNever;
  }
}

// The blocks in the cache by their next use.
class FarthestFirst {
 public:
  FarthestFirst(uint32_t blocks, uint64_t capacity)
      : next_use_(blocks, kNever), capacity_(capacity) {}

  bool Contains(uint32_t block) const { return next_use_[block] != kNever; }

  // After a use: keeps the block if that pays.
  void Keep(const Use& use) {
    if (Contains(use.block)) {
      next_use_[use.block] = kNever;
      --size_;
    }
    if (use.next_use == kNever || capacity_ == 0) return;
    if (size_ == capacity_) {
      DropStale();
      if (heap_.top().first <= use.next_use) return;
      next_use_[heap_.top().second] = kNever;
      heap_.pop();
      --size_;
    }
    next_use_[use.block] = use.next_use;
    heap_.emplace(use.next_use, use.block);
    ++size_;
  }

 private:
  // Entries of blocks that have been used or dropped since.
  void DropStale() {
    while (next_use_[heap_.top().second] != heap_.top().first) heap_.pop();
  }

  std::vector<uint32_t> next_use_;  // [blocks]; kNever: not in the cache
  std::priority_queue<std::pair<uint32_t, uint32_t>> heap_;
  uint64_t size_ = 0;
  const uint64_t capacity_;
};

}  // namespace

uint64_t BeladyHitTokens(const Trace& trace, const std::vector<bool>& served,
                         uint32_t block_tokens, uint64_t pool_blocks) {
  PAGED_KV_CHECK(served.size() == trace.requests.size());
  uint32_t blocks = 0;
  std::vector<Use> uses = ListUses(trace, served, block_tokens, &blocks);
  LinkNextUses(blocks, uses);

  FarthestFirst cache(blocks, pool_blocks);
  uint64_t hits = 0;
  for (const Use& use : uses) {
    if (use.can_hit && cache.Contains(use.block)) ++hits;
    cache.Keep(use);
  }
  return hits * block_tokens;
}

}  // namespace paged_kv::tool
