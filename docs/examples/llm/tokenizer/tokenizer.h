// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back, by the vocabulary of a model file.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKENIZER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "docs/examples/llm/tokenizer/text_encoder.h"
#include "docs/examples/llm/tokenizer/token_table.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

class SpecialTokens;

enum class AddBos : uint8_t { kAsModel, kNo, kYes };

struct EncodeOptions {
  // kYes has no effect where the model has no BOS token.
  AddBos add_bos = AddBos::kAsModel;
  // Whether text that spells a control token, as <|im_end|>, becomes it. Off
  // for text of users, who could otherwise end their own message.
  bool parse_special = false;
};

// Thread safety: immutable, so any number of threads may use one.
class Tokenizer {
 public:
  // InvalidArgument: a vocabulary that contradicts itself. Unimplemented: an
  // unknown splitting pattern, with its name.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      Vocabulary vocabulary);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // InvalidArgument: `text` is not UTF-8, with the byte where it ends to be; or
  // a SentencePiece vocabulary has neither bytes nor an unknown token.
  absl::StatusOr<std::vector<TokenId>> Encode(
      absl::string_view text, const EncodeOptions& options = {}) const;

  // The text of the tokens; control tokens (BOS, <|im_end|>) give none. A token
  // outside the vocabulary gives U+FFFD, as do bytes that are not UTF-8.
  // `at_start`: the tokens begin a text, as opposed to following a prompt, so
  // the space that Encode put before it is dropped.
  std::string Decode(absl::Span<const TokenId> tokens,
                     bool at_start = true) const;

  // The bytes that `token` stands for, maybe a part of a character; empty for
  // control tokens. A token outside the vocabulary gives U+FFFD. Valid while
  // the tokenizer lives.
  absl::string_view TokenBytes(TokenId token) const;

  // How the model file spells the token, control tokens too; for display.
  // Empty outside the vocabulary. Valid while the tokenizer lives.
  absl::string_view TokenText(TokenId token) const;

  // The id of the token that is spelled so in the model file.
  absl::optional<TokenId> FindToken(absl::string_view text) const;

  bool IsControl(TokenId token) const;
  // A control token, or one added by a user: found in a text as a whole.
  bool IsSpecial(TokenId token) const;
  // EOS, or another token of the vocabulary that ends a text or a turn.
  bool EndsText(TokenId token) const;

  const Vocabulary& vocabulary() const { return table_->vocabulary(); }
  size_t size() const { return vocabulary().tokens.size(); }
  absl::optional<TokenId> bos() const { return vocabulary().bos; }
  absl::optional<TokenId> eos() const { return vocabulary().eos; }
  // Whether Encode puts a space before a text, and after each special token in
  // it, which Decode drops again.
  bool adds_first_space() const;

 private:
  Tokenizer(std::unique_ptr<TokenTable> table,
            std::unique_ptr<TextEncoder> encoder,
            std::unique_ptr<SpecialTokens> special);

  std::unique_ptr<TokenTable> table_;
  std::unique_ptr<TextEncoder> encoder_;
  std::unique_ptr<SpecialTokens> special_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TOKENIZER_H_
