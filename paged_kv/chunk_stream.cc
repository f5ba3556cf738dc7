// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/chunk_stream.h"

#include <algorithm>

#include "paged_kv/check.h"
#include "paged_kv/key_extras.h"

namespace paged_kv::internal {

ChunkStream::ChunkStream(const PrefixIndex& index, const TokenId* tokens,
                         uint32_t first, uint32_t end, uint32_t parent_tag,
                         absl::string_view frames)
    : index_(index),
      tokens_(tokens),
      frames_(frames),
      next_(first),
      hashed_(first),
      end_(end),
      last_tag_(parent_tag) {
  CutExtrasBefore(first * index.chunk_tokens(), &frames_);
}

void ChunkStream::Hash() {
  Chunk& chunk = chunks_[hashed_ % kRing];
  const uint32_t chunk_tokens = index_.chunk_tokens();
  chunk.tokens = tokens_ + size_t{hashed_} * chunk_tokens;
  chunk.extras = CutExtrasBefore((hashed_ + 1) * chunk_tokens, &frames_);
  chunk.tag = index_.ChunkTag(last_tag_, chunk.tokens, chunk.extras);
  last_tag_ = chunk.tag;
  probes_[hashed_ % kRing] = index_.StartProbe(chunk.tag);
  ++hashed_;
}

const ChunkStream::Chunk& ChunkStream::Next() {
  PAGED_KV_DCHECK(next_ < end_);
  while (hashed_ < end_ && hashed_ - next_ < kAhead) Hash();
  for (uint32_t ahead = kAhead - kStep; ahead > 0; ahead -= kStep) {
    const uint32_t chunk = next_ + ahead;
    if (chunk < hashed_) index_.Advance(&probes_[chunk % kRing]);
  }
  return chunks_[next_++ % kRing];
}

}  // namespace paged_kv::internal
