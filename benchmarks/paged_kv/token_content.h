// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_TOKEN_CONTENT_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_TOKEN_CONTENT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv::benchmarks {

// Tokens of text number `text` from position `first` on: a function of the
// number and the position, so that a text need not be kept to be asked for
// again. The mixer is SplitMix64's (Steele, Lea, Flood 2014).
inline void FillText(uint64_t text, uint32_t first,
                     absl::Span<TokenId> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    uint64_t x = (text << 20) + first + i + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    tokens[i] = static_cast<TokenId>((x ^ (x >> 31)) & 0x7fffffff);
  }
}

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_TOKEN_CONTENT_H_
