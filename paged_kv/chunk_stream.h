// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_CHUNK_STREAM_H_
#define PAGED_KV_CHUNK_STREAM_H_

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
    absl::string_view extras;
    uint32_t tag;
  };

  // Chunks [first, end) behind a prefix of hash `parent_tag`. `tokens`
  // [end * chunk_tokens] and `frames`, the canonical extras of the whole
  // prompt, are borrowed, and so is `index`.
  ChunkStream(const PrefixIndex& index, const TokenId* tokens, uint32_t first,
              uint32_t end, uint32_t parent_tag, absl::string_view frames);

  // REQUIRES: called less than end - first times so far.
  const Chunk& Next();

 private:
  // How many chunks ahead of Next() hashes are made, and how many of these lie
  // between the steps of PrefixIndex::Advance().
  static constexpr uint32_t kAhead = 12;
  static constexpr uint32_t kStep = 3;
  static constexpr uint32_t kRing = 16;
  static_assert(kAhead < kRing);

  void Hash();

  const PrefixIndex& index_;
  const TokenId* tokens_;
  absl::string_view frames_;
  uint32_t next_;
  uint32_t hashed_;  // chunks before this one are in the ring
  uint32_t end_;
  uint32_t last_tag_;
  Chunk chunks_[kRing];
  PrefixIndex::Probe probes_[kRing];
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_CHUNK_STREAM_H_
