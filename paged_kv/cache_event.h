// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a router that knows many caches needs to hear from one of them.

#ifndef PAGED_KV_CACHE_EVENT_H_
#define PAGED_KV_CACHE_EVENT_H_

#include <array>
#include <cstdint>

#include "paged_kv/types.h"

namespace paged_kv {

// SHA-256 (FIPS 180-4) of a chunk: over the parent's digest, the byte length of
// the chunk's key extras, the extras and the tokens, numbers as little-endian
// 32 bits. An extra is its kind (1 byte), position, length and value; they are
// sorted by position, kind and value. The chain starts at the SHA-256 of
// KvCacheOptions::digest_domain. Equal in every process and on every machine.
using ContentDigest = std::array<uint8_t, 32>;

// A chunk is the shortest run of tokens that is whole blocks in every layer
// group: one block where all groups have the same block_tokens.
struct CacheEvent {
  enum class Kind : uint8_t {
    kStored,   // the first copy of this content became shareable
    kRemoved,  // its last copy was dropped
    kCleared,  // everything was dropped (Reset); the other fields are empty
  };

  Kind kind = Kind::kStored;
  GroupId group;
  uint32_t block_in_chunk = 0;
  uint32_t tokens = 0;  // of the block
  ContentDigest digest{};
  ContentDigest parent{};  // all zero at the start of a prompt
};

}  // namespace paged_kv

#endif  // PAGED_KV_CACHE_EVENT_H_
