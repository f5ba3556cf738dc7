// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// From prompts to cached blocks, and from written blocks into the index.

#ifndef PAGED_KV_PREFIX_LOOKUP_H_
#define PAGED_KV_PREFIX_LOOKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "paged_kv/cache_state.h"

namespace paged_kv::internal {

// InvalidArgument if `extras` do not fit the options or the prompt; else
// writes their canonical form to *frames.
absl::Status CanonicalExtras(const CacheState& state, KeyExtras extras,
                             size_t prompt_tokens, std::string* frames);

struct PrefixHit {
  uint32_t tokens = 0;  // a multiple of the chunk
  PrefixCursor cursor;  // of the last of them
};

// The longest prefix of `tokens` [prompt_tokens] that is usable: in every
// group, all blocks that its continuation attends to are there. At least one
// token is left over. `frames`: canonical extras of the whole prompt.
PrefixHit FindPrefix(const CacheState& state, const TokenId* tokens,
                     uint32_t prompt_tokens, absl::string_view frames);

// Calls f(group index, logical block, block) for every block that a sequence
// continuing behind `hit` holds.
template <typename F>
void ForEachHitBlock(const CacheState& state, const PrefixHit& hit, F f) {
  const PrefixIndex& index = *state.index;
  const uint32_t chunk_tokens = index.chunk_tokens();
  PrefixCursor cursor = hit.cursor;
  for (uint32_t chunk = hit.tokens / chunk_tokens; chunk-- > 0;) {
    for (uint32_t g = 0; g < state.groups.size(); ++g) {
      const GroupGeometry& group = state.groups[g];
      const uint32_t first_needed = group.FirstNeeded(hit.tokens);
      const uint32_t places = chunk_tokens / group.block_tokens;
      for (uint32_t place = 0; place < places; ++place) {
        const uint32_t logical = chunk * places + place;
        if (logical >= group.sink_blocks && logical < first_needed) continue;
        f(g, logical, index.First(cursor.node, group.first_place + place));
      }
    }
    cursor = index.Parent(cursor);
  }
}

// Makes shareable what of a sequence is full, written and of known values.
void IndexWritten(CacheState* state, uint32_t slot);

// Moves the sequence's place in the index back to at most `tokens` tokens.
void RewindIndex(CacheState* state, uint32_t slot, uint32_t tokens);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_PREFIX_LOOKUP_H_
