// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKEN_TABLE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKEN_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// The tokens of a vocabulary: spelling to id, id to the bytes it stands for.
//
// Thread safety: immutable, so any number of threads may use one.
class TokenTable {
 public:
  // InvalidArgument: lengths that differ, ids outside the vocabulary, more
  // tokens than ids, or a spelling that its kind does not allow.
  static absl::StatusOr<TokenTable> Create(Vocabulary vocabulary);

  TokenTable(TokenTable&&) = default;
  TokenTable& operator=(TokenTable&&) = default;

  size_t size() const { return vocabulary_.tokens.size(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool contains(TokenId token) const {
    return token >= 0 && static_cast<size_t>(token) < size();
  }
  // REQUIRES of the next three: contains(token).
  absl::string_view text(TokenId token) const {
    return vocabulary_.tokens[static_cast<size_t>(token)];
  }
  TokenKind kind(TokenId token) const {
    return vocabulary_.token_kinds[static_cast<size_t>(token)];
  }
  // What the token adds to a text: nothing for control tokens, U+FFFD for the
  // unknown token.
  absl::string_view bytes(TokenId token) const {
    return bytes_[static_cast<size_t>(token)];
  }

  // The token spelled so. Where several are, the first.
  absl::optional<TokenId> Find(absl::string_view text) const;

 private:
  explicit TokenTable(Vocabulary vocabulary);

  Vocabulary vocabulary_;
  std::vector<std::string> bytes_;  // [tokens]
  // The keys point into vocabulary_.tokens, whose strings do not move with it.
  absl::flat_hash_map<absl::string_view, TokenId> ids_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKEN_TABLE_H_
