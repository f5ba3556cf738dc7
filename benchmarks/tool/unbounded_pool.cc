// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/unbounded_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/bits.h"
#include "benchmarks/tool/prompt_trie.h"

namespace paged_kv::tool {
namespace {

uint64_t RoundUp(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Hash ids that the prompt shares with an earlier one; then adds it. The last
// id counts for fewer tokens than the others and is left out, so that the
// answer is never too high.
size_t AddAndCountShared(const Request& request, PromptTrie& trie) {
  uint32_t node = PromptTrie::kRoot;
  size_t shared = 0;
  bool on_path = true;
  for (size_t i = 0; i + 1 < request.hash_ids.size(); ++i) {
    const auto [child, is_new] = trie.Child(node, request.hash_ids[i]);
    on_path = on_path && !is_new;
    if (on_path) ++shared;
    node = child;
  }
  return shared;
}

// Slots that all requests together fill if every shared prefix is stored once.
uint64_t DistinctSlots(const Trace& trace, uint32_t block_tokens) {
  PromptTrie trie;
  uint64_t slots = 0;
  for (const Request& request : trace.requests) {
    const uint64_t shared =
        AddAndCountShared(request, trie) * trace.hash_block_tokens;
    const uint64_t shared_blocks =
        std::min<uint64_t>(shared, request.prompt_tokens - 1) / block_tokens;
    slots += RoundUp(request.total_tokens(), block_tokens) -
             shared_blocks * block_tokens;
  }
  return slots;
}

// Slots that a policy without sharing holds for a request at its end.
uint64_t HeldSlots(const Trace& trace, PolicyKind kind, uint32_t block_tokens,
                   const Request& request) {
  const uint64_t total = request.total_tokens();
  switch (kind) {
    case PolicyKind::kPaged:
    case PolicyKind::kPagedNoShare:
      return RoundUp(total, block_tokens);
    case PolicyKind::kContiguous:
      return trace.max_total_tokens();
    case PolicyKind::kBuddy:
      // Half as much again while it moves.
      return 2 * absl::bit_ceil(std::max<uint64_t>(total, block_tokens));
    case PolicyKind::kLargePages:
      return RoundUp(total, 2048);
    case PolicyKind::kLargePages64K:
      return RoundUp(total, 64);
    case PolicyKind::kCells:
    case PolicyKind::kOracle:
      return total;
  }
  return total;
}

}  // namespace

uint64_t UnboundedSlots(const Trace& trace, PolicyKind kind,
                        uint32_t block_tokens, uint32_t max_running) {
  uint64_t sum = 0, largest = 0;
  for (const Request& request : trace.requests) {
    const uint64_t held = HeldSlots(trace, kind, block_tokens, request);
    sum += held;
    largest = std::max(largest, held);
  }
  if (kind == PolicyKind::kPaged) {
    // What was freed stays cached, so it is the whole trace that has to fit.
    sum = max_running == 1 ? DistinctSlots(trace, block_tokens) : sum;
    return RoundUp(std::max(sum, largest), block_tokens);
  }
  uint64_t slots = std::min(sum, largest * max_running);
  // A buddy range is best one aligned region.
  if (kind == PolicyKind::kBuddy) slots = absl::bit_ceil(slots);
  return RoundUp(std::max(slots, largest), block_tokens);
}

}  // namespace paged_kv::tool
