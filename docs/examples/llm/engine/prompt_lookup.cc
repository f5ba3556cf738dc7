// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/prompt_lookup.h"

#include <algorithm>
#include <cstddef>

namespace paged_kv::llm {
namespace {

constexpr size_t kLongestMatch = 3;

// How many tokens before `end` are those at the end of `tokens`, up to
// kLongestMatch.
size_t MatchLength(absl::Span<const TokenId> tokens, size_t end) {
  const size_t most = std::min(kLongestMatch, end);
  size_t length = 0;
  while (length < most &&
         tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) {
    ++length;
  }
  return length;
}

}  // namespace

void LookUpDraft(absl::Span<const TokenId> tokens, uint32_t max_tokens,
                 std::vector<TokenId>* draft) {
  draft->clear();
  size_t best = 0, next = 0;
  for (size_t end = tokens.size(); end-- > 1 && best < kLongestMatch;) {
    const size_t length = MatchLength(tokens, end);
    if (length <= best) continue;
    best = length;
    next = end;
  }
  if (best == 0) return;
  for (uint32_t i = 0; i < max_tokens; ++i, ++next) {
    draft->push_back(next < tokens.size() ? tokens[next]
                                          : (*draft)[next - tokens.size()]);
  }
}

}  // namespace paged_kv::llm
