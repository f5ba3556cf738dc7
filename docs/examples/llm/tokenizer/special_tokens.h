// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPECIAL_TOKENS_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPECIAL_TOKENS_H_

#include <array>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/tokenizer/token_table.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// Tokens that are found in a text as a whole, before it is encoded: control
// tokens and those that a user has added.
//
// Thread safety: immutable, so any number of threads may use one.
class SpecialTokens {
 public:
  struct Part {
    absl::string_view text;
    absl::optional<TokenId> token;  // none: plain text
  };

  // `table` must outlive this.
  explicit SpecialTokens(const TokenTable* table);

  // The text as special tokens and what lies between them: from left to right,
  // the longest first. Control tokens only if `with_control`.
  std::vector<Part> Split(absl::string_view text, bool with_control) const;

 private:
  // The token that `text` begins with.
  absl::optional<TokenId> Match(absl::string_view text,
                                bool with_control) const;

  const TokenTable* table_;
  // [first byte] Tokens, the longest first.
  std::array<std::vector<TokenId>, 256> tokens_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SPECIAL_TOKENS_H_
