// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_LIFO_SHADOW_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_LIFO_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "paged_kv/types.h"

namespace paged_kv::tool {

// Which pages the blocks of sequences would have if the free pages of each
// split were a stack, last in first out, as in most page allocators. Follows a
// manager whose sequences all are on the device. Thread safety:
// thread-compatible.
class LifoShadow {
 public:
  LifoShadow(uint32_t pages, uint32_t splits) : free_(splits) {
    const uint32_t n = pages / splits;
    for (uint32_t split = 0; split < splits; ++split) {
      free_[split].resize(n);
      std::iota(free_[split].rbegin(), free_[split].rend(), split * n);
    }
  }

  // Takes a page of split `logical` % splits if nobody holds the block yet.
  // REQUIRES: the split has a free page then.
  void Hold(BlockId block, uint32_t logical) {
    Use& use = uses_[block.value()];
    if (++use.holders > 1) return;
    std::vector<uint32_t>& free = free_[logical % free_.size()];
    use.page = free.back();
    use.split = static_cast<uint32_t>(logical % free_.size());
    free.pop_back();
  }
  // Gives the page back with the last holder. REQUIRES: somebody holds it.
  void Drop(BlockId block) {
    const auto it = uses_.find(block.value());
    if (--it->second.holders > 0) return;
    free_[it->second.split].push_back(it->second.page);
    uses_.erase(it);
  }
  uint32_t PageOf(BlockId block) const { return uses_.at(block.value()).page; }
  size_t num_free() const {
    size_t sum = 0;
    for (const auto& free : free_) sum += free.size();
    return sum;
  }

 private:
  struct Use {
    uint32_t holders = 0;  // places in sequences' tables
    uint32_t page = 0;
    uint32_t split = 0;
  };
  std::vector<std::vector<uint32_t>> free_;  // [splits]
  absl::flat_hash_map<uint32_t, Use> uses_;  // by block
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_LIFO_SHADOW_H_
