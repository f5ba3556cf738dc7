// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/prefix_lookup.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::internal {
namespace {

// How much of a prefix one group has, followed chunk by chunk.
struct GroupCoverage {
  uint32_t from_start = 0;  // blocks present without a gap from block 0
  uint32_t at_end = 0;      // blocks present without a gap up to here
};

// True if a sequence could continue at `tokens` with these blocks.
bool Covers(const GroupGeometry& group, const GroupCoverage& coverage,
            uint32_t tokens) {
  const uint32_t blocks = tokens / group.block_tokens;
  return coverage.at_end >= blocks - group.FirstNeeded(tokens) &&
         coverage.from_start >= std::min(group.sink_blocks, blocks);
}

void Extend(const CacheState& state, const GroupGeometry& group, uint32_t node,
            uint32_t blocks_before, GroupCoverage* coverage) {
  const uint32_t places = state.index->chunk_tokens() / group.block_tokens;
  for (uint32_t place = 0; place < places; ++place) {
    if (state.index->First(node, group.first_place + place) == kNoBlock) {
      coverage->at_end = 0;
      continue;
    }
    ++coverage->at_end;
    if (coverage->from_start == blocks_before + place) ++coverage->from_start;
  }
}

}  // namespace

absl::Status CanonicalExtras(const CacheState& state, KeyExtras extras,
                             size_t prompt_tokens, std::string* frames) {
  const size_t bytes = SerializedExtrasBytes(extras);
  const uint32_t limit = state.options.max_extra_bytes_per_sequence;
  if (bytes > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("key extras need ", bytes, " bytes, limit ", limit,
                     " (KvCacheOptions::max_extra_bytes_per_sequence)"));
  }
  for (const KeyExtra& extra : extras) {
    if (extra.position.value() >= prompt_tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("key extra at position ", extra.position.value(),
                       " of a prompt of ", prompt_tokens, " tokens"));
    }
  }
  SerializeExtras(extras, frames);
  return absl::OkStatus();
}

PrefixHit FindPrefix(const CacheState& state, const TokenId* tokens,
                     uint32_t prompt_tokens, absl::string_view frames) {
  PrefixHit best;
  if (!state.options.prefix_caching || prompt_tokens == 0) return best;
  const PrefixIndex& index = *state.index;
  const uint32_t chunk_tokens = index.chunk_tokens();
  const uint32_t chunks = (prompt_tokens - 1) / chunk_tokens;

  absl::InlinedVector<GroupCoverage, kMaxGroups> coverage(state.groups.size());
  // Hashes need no look-up, so those of the next chunks are made ahead and
  // their buckets are on the way while the present one is compared.
  constexpr uint32_t kAhead = 8;
  struct Pending {
    uint32_t tag;
    absl::string_view extras;
  };
  Pending pending[kAhead];
  uint32_t hashed = 0;
  uint32_t last_tag = 0;

  PrefixCursor cursor;
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    for (; hashed < std::min(chunks, chunk + kAhead); ++hashed) {
      Pending& next = pending[hashed % kAhead];
      next.extras = CutExtrasBefore((hashed + 1) * chunk_tokens, &frames);
      next.tag = index.ChunkTag(
          last_tag, tokens + size_t{hashed} * chunk_tokens, next.extras);
      last_tag = next.tag;
      index.Prefetch(next.tag);
    }
    const Pending& here = pending[chunk % kAhead];
    if (!index.Find(here.tag, tokens + size_t{chunk} * chunk_tokens,
                    here.extras, &cursor)) {
      break;
    }
    const uint32_t end = (chunk + 1) * chunk_tokens;
    bool usable = true;
    bool hopeless = false;
    for (size_t g = 0; g < state.groups.size(); ++g) {
      const GroupGeometry& group = state.groups[g];
      Extend(state, group, cursor.node,
             chunk * (chunk_tokens / group.block_tokens), &coverage[g]);
      const bool covers = Covers(group, coverage[g], end);
      usable = usable && covers;
      hopeless = hopeless || (!covers && group.window == 0);
    }
    if (hopeless) break;
    if (usable) best = {end, cursor};
  }
  return best;
}

void IndexWritten(CacheState* state, uint32_t slot) {
  Sequence& sequence = state->sequences.at(slot);
  if (!sequence.share) return;
  PrefixIndex& index = *state->index;
  const uint32_t chunk_tokens = index.chunk_tokens();
  const uint32_t ready = std::min(sequence.written, sequence.known);
  if ((sequence.indexed_chunks + 1) * uint64_t{chunk_tokens} > ready) return;

  absl::string_view frames = state->sequences.ExtrasOf(slot);
  CutExtrasBefore(sequence.indexed_chunks * chunk_tokens, &frames);
  const TokenId* tokens = state->sequences.tokens(slot);
  while ((sequence.indexed_chunks + 1) * uint64_t{chunk_tokens} <= ready) {
    const uint32_t chunk = sequence.indexed_chunks;
    const TokenId* chunk_values = tokens + size_t{chunk} * chunk_tokens;
    const absl::string_view extras =
        CutExtrasBefore((chunk + 1) * chunk_tokens, &frames);
    PrefixCursor cursor = sequence.cursor;
    const uint32_t tag =
        index.ChunkTag(index.TagOf(cursor.node), chunk_values, extras);
    if (!index.FindOrAdd(tag, chunk_values, extras, &cursor)) {
      // No room. What follows could not be found without this chunk.
      ++state->unshared_chunks;
      sequence.share = false;
      return;
    }
    index.Pin(cursor.node);
    index.Unpin(sequence.cursor.node);
    sequence.cursor = cursor;
    ++sequence.indexed_chunks;
    for (uint32_t g = 0; g < state->groups.size(); ++g) {
      const GroupGeometry& group = state->groups[g];
      BlockPool& pool = state->PoolOf(group);
      const BlockId* table = state->sequences.blocks(slot, group);
      const uint32_t places = chunk_tokens / group.block_tokens;
      for (uint32_t place = 0; place < places; ++place) {
        const BlockId block = table[chunk * places + place];
        if (block == kNoBlock || pool.shareable(block)) continue;
        index.Attach(cursor.node, group.first_place + place, block);
      }
    }
  }
}

void RewindIndex(CacheState* state, uint32_t slot, uint32_t tokens) {
  Sequence& sequence = state->sequences.at(slot);
  PrefixIndex& index = *state->index;
  const uint32_t chunks = tokens / index.chunk_tokens();
  if (sequence.indexed_chunks <= chunks) return;
  const uint32_t old_node = sequence.cursor.node;
  while (sequence.indexed_chunks > chunks) {
    sequence.cursor = index.Parent(sequence.cursor);
    --sequence.indexed_chunks;
  }
  index.Pin(sequence.cursor.node);
  index.Unpin(old_node);
}

}  // namespace paged_kv::internal
