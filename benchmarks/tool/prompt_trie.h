// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_PROMPT_TRIE_H_
#define PAGED_KV_BENCHMARKS_TOOL_PROMPT_TRIE_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace paged_kv::tool {

// Numbers paths: equal sequences of steps from the root lead to equal nodes,
// different ones to different nodes.
//
// Thread safety: none.
class PromptTrie {
 public:
  static constexpr uint32_t kRoot = 0;

  // The node one step below `node`, and whether this call made it.
  std::pair<uint32_t, bool> Child(uint32_t node, uint32_t step) {
    const auto [it, is_new] =
        children_.try_emplace(std::pair(node, step), next_);
    if (is_new) ++next_;
    return {it->second, is_new};
  }

 private:
  uint32_t next_ = kRoot + 1;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> children_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_PROMPT_TRIE_H_
