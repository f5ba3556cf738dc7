// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_BELADY_H_
#define PAGED_KV_BENCHMARKS_TOOL_BELADY_H_

#include <cstdint>
#include <vector>

#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

// Prompt tokens that a cache of `pool_blocks` blocks could find at most if it
// knew the future, for requests served one after the other.
//
// Belady's rule (1966, "A study of replacement algorithms for a
// virtual-storage computer") at the granularity of blocks: of all blocks in
// the cache and the one just used, the one whose next use is farthest away
// goes. It is a ceiling for every manager, because it is spared what a manager
// has to obey: a block need not be kept while its request runs, generated
// tokens take no room, and a block counts as found even if one before it is
// gone. As everywhere, at least one token of a prompt is computed.
//
// served [requests]: false leaves a request out (it never fits). Time O(n log
// n) in the blocks of all prompts.
uint64_t BeladyHitTokens(const Trace& trace, const std::vector<bool>& served,
                         uint32_t block_tokens, uint64_t pool_blocks);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_BELADY_H_
