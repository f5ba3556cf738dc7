// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/prefix_lookup.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"
#include "paged_kv/chunk_stream.h"

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
  ChunkStream stream(index, tokens, 0, chunks, /*parent_tag=*/0, frames,
                     ChunkStream::Use::kUntilMiss);
  PrefixCursor cursor;
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkStream::Chunk& here = stream.Next();
    if (!index.Find(here.tag, here.tokens, here.extras(), &cursor)) break;
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

  const uint32_t end = ready / chunk_tokens;
  ChunkStream stream(
      index, state->sequences.tokens(slot), sequence.indexed_chunks, end,
      index.TagOf(sequence.cursor.node), state->sequences.ExtrasOf(slot),
      ChunkStream::Use::kAllChunks);
  while (sequence.indexed_chunks < end) {
    const uint32_t chunk = sequence.indexed_chunks;
    const ChunkStream::Chunk& here = stream.Next();
    PrefixCursor cursor = sequence.cursor;
    if (!index.FindOrAdd(here.tag, here.tokens, here.extras(), &cursor)) {
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
