// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_MERGE_QUEUE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "absl/types/optional.h"

namespace paged_kv::llm {

// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): symbols in a
// row, of which the neighbours that merge best, the leftmost first, become one,
// until none merge. O(n log n) in the number of symbols.
//
// Merger: absl::optional<Merge> operator()(const Symbol& left,
// const Symbol& right) says what two neighbours become; the lowest `order` goes
// first.
template <typename Symbol, typename Order>
struct Merge {
  Symbol merged;
  Order order;
};

// Replaces `symbols` by what is left of them. Symbols are small values.
template <typename Symbol, typename Order, typename Merger>
void MergeSymbols(const Merger& merger, std::vector<Symbol>* symbols) {
  constexpr size_t kNone = SIZE_MAX;
  struct Node {
    size_t previous;
    size_t next;
    uint32_t version;  // counts changes: a candidate of old ones is stale
    bool alive;
  };
  struct Candidate {
    Order order;
    size_t left;
    size_t right;
    uint32_t left_version;
    uint32_t right_version;
    Symbol merged;

    // The top of a priority_queue is the greatest.
    bool operator<(const Candidate& other) const {
      return other.order < order ||
             (!(order < other.order) && left > other.left);
    }
  };

  const size_t count = symbols->size();
  std::vector<Node> nodes(count);
  std::priority_queue<Candidate> queue;
  const auto offer = [&](size_t left, size_t right) {
    if (left == kNone || right == kNone) return;
    const absl::optional<Merge<Symbol, Order>> merge =
        merger((*symbols)[left], (*symbols)[right]);
    if (!merge.has_value()) return;
    queue.push({merge->order, left, right, nodes[left].version,
                nodes[right].version, merge->merged});
  };
  for (size_t i = 0; i < count; ++i) {
    nodes[i] = {i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, 0,
                true};
  }
  for (size_t i = 1; i < count; ++i) offer(i - 1, i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.left];
    Node& right = nodes[best.right];
    if (!left.alive || !right.alive || left.version != best.left_version ||
        right.version != best.right_version) {
      continue;
    }
    (*symbols)[best.left] = best.merged;
    ++left.version;
    right.alive = false;
    left.next = right.next;
    if (left.next != kNone) nodes[left.next].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }

  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (nodes[i].alive) (*symbols)[kept++] = (*symbols)[i];
  }
  symbols->resize(kept);
}

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_MERGE_QUEUE_H_
