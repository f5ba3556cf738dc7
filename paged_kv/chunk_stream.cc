// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/chunk_stream.h"

#include "paged_kv/check.h"
#include "paged_kv/key_extras.h"

namespace paged_kv::internal {

ChunkStream::ChunkStream(const PrefixIndex& index, const TokenId* tokens,
                         uint32_t first, uint32_t end, uint32_t parent_tag,
                         absl::string_view frames, Use use)
    : index_(index),
      tokens_(tokens),
      frames_(frames),
      next_(first),
      hashed_(first),
      end_(end),
      ahead_(use == Use::kAllChunks ? kAhead : kAheadAtFirst),
      last_tag_(parent_tag) {
  CutExtrasBefore(first * index.chunk_tokens(), &frames_);
  HashAhead();
  // Nothing has been ahead of these. Side by side, they wait once for all.
  if (hashed_ - first == 1) return;
  for (int steps = 0; steps < 2; ++steps) {
    for (uint32_t chunk = first; chunk < hashed_; ++chunk) {
      index_.Advance(&probes_[chunk % kRing]);
    }
  }
}

void ChunkStream::HashAhead() {
  const uint32_t chunk_tokens = index_.chunk_tokens();
  for (; hashed_ < end_ && hashed_ - next_ < ahead_; ++hashed_) {
    Chunk& chunk = chunks_[hashed_ % kRing];
    chunk.tokens = tokens_ + size_t{hashed_} * chunk_tokens;
    const absl::string_view extras =
        CutExtrasBefore((hashed_ + 1) * chunk_tokens, &frames_);
    chunk.extras_data = extras.data();
    chunk.extras_bytes = extras.size();
    chunk.tag = index_.ChunkTag(last_tag_, chunk.tokens, extras);
    last_tag_ = chunk.tag;
    probes_[hashed_ % kRing] = index_.StartProbe(chunk.tag);
  }
}

const ChunkStream::Chunk& ChunkStream::Next() {
  PAGED_KV_DCHECK(next_ < end_);
  HashAhead();
  if (ahead_ < kAhead) ahead_ += 2;
  for (uint32_t ahead = kAhead - kStep; ahead > 0; ahead -= kStep) {
    const uint32_t chunk = next_ + ahead;
    if (chunk < hashed_) index_.Advance(&probes_[chunk % kRing]);
  }
  return chunks_[next_++ % kRing];
}

}  // namespace paged_kv::internal
