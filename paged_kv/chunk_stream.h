// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_CHUNK_STREAM_H_
#define PAGED_KV_CHUNK_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "paged_kv/prefix_index.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// The chunks of a prompt in order, each with its key extras and its hash.
// Hashes need no look-up, so those of the next chunks are made ahead, and what
// their look-ups will read is on its way while the present one is compared.
class ChunkStream {
 public:
  struct Chunk {
    const TokenId* tokens;  // [chunk_tokens]
    const char* extras_data;
    size_t extras_bytes;
    uint32_t tag;

    absl::string_view extras() const { return {extras_data, extras_bytes}; }
  };

  // Whether all chunks will be asked for, or perhaps not even the second.
  enum class Use { kAllChunks, kUntilMiss };

  // Chunks [first, end) behind a prefix of hash `parent_tag`. `tokens`
  // [end * chunk_tokens] and `frames`, the canonical extras of the whole
  // prompt, are borrowed, and so is `index`.
  ChunkStream(const PrefixIndex& index, const TokenId* tokens, uint32_t first,
              uint32_t end, uint32_t parent_tag, absl::string_view frames,
              Use use);

  // REQUIRES: called less than end - first times so far.
  const Chunk& Next();

 private:
  // How many chunks ahead of Next() hashes are made, and how many of these lie
  // between the steps of PrefixIndex::Advance(): a read from memory should take
  // less time than so many comparisons.
  static constexpr uint32_t kAhead = 28;
  static constexpr uint32_t kStep = 7;
  static constexpr uint32_t kRing = 32;
  static_assert(kAhead < kRing && kAhead % kStep == 0);
  // With kUntilMiss, only so many at first, then more and more.
  static constexpr uint32_t kAheadAtFirst = 8;

  void HashAhead();

  const PrefixIndex& index_;
  const TokenId* tokens_;
  absl::string_view frames_;
  uint32_t next_;
  uint32_t hashed_;  // chunks before this one are in the ring
  uint32_t end_;
  uint32_t ahead_;
  uint32_t last_tag_;
  Chunk chunks_[kRing];
  PrefixIndex::Probe probes_[kRing];
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_CHUNK_STREAM_H_
