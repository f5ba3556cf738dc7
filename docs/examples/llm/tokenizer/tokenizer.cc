// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "docs/examples/llm/tokenizer/byte_level_encoder.h"
#include "docs/examples/llm/tokenizer/sentence_piece_encoder.h"
#include "docs/examples/llm/tokenizer/special_tokens.h"
#include "docs/examples/llm/tokenizer/streaming_decoder.h"
#include "docs/examples/llm/tokenizer/utf8.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {

Tokenizer::Tokenizer(std::unique_ptr<TokenTable> table,
                     std::unique_ptr<TextEncoder> encoder,
                     std::unique_ptr<SpecialTokens> special)
    : table_(std::move(table)),
      encoder_(std::move(encoder)),
      special_(std::move(special)) {}

Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    Vocabulary vocabulary) {
  PAGED_KV_ASSIGN_OR_RETURN(TokenTable created,
                            TokenTable::Create(std::move(vocabulary)));
  auto table = std::make_unique<TokenTable>(std::move(created));
  std::unique_ptr<TextEncoder> encoder;
  if (table->vocabulary().kind == VocabularyKind::kSentencePiece) {
    encoder = std::make_unique<SentencePieceEncoder>(table.get());
  } else {
    PAGED_KV_ASSIGN_OR_RETURN(encoder, ByteLevelEncoder::Create(table.get()));
  }
  auto special = std::make_unique<SpecialTokens>(table.get());
  return absl::WrapUnique(
      new Tokenizer(std::move(table), std::move(encoder), std::move(special)));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (const absl::optional<size_t> invalid = FindInvalidUtf8(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text is not UTF-8 at byte ", *invalid));
  }
  std::vector<TokenId> tokens;
  const bool add_bos =
      options.add_bos == AddBos::kYes ||
      (options.add_bos == AddBos::kAsModel && vocabulary().add_bos);
  if (add_bos && bos().has_value()) tokens.push_back(*bos());
  for (const SpecialTokens::Part& part :
       special_->Split(text, options.parse_special)) {
    if (part.token.has_value()) {
      tokens.push_back(*part.token);
    } else {
      PAGED_KV_RETURN_IF_ERROR(encoder_->Encode(part.text, &tokens));
    }
  }
  return tokens;
}

std::string Tokenizer::Decode(absl::Span<const TokenId> tokens,
                              bool at_start) const {
  StreamingDecoder decoder(this, at_start);
  std::string text;
  for (const TokenId token : tokens) text += decoder.Next(token);
  return text + decoder.Finish();
}

absl::string_view Tokenizer::TokenBytes(TokenId token) const {
  return table_->contains(token) ? table_->bytes(token)
                                 : absl::string_view(kReplacementCharacter);
}

absl::string_view Tokenizer::TokenText(TokenId token) const {
  return table_->contains(token) ? table_->text(token) : absl::string_view();
}

absl::optional<TokenId> Tokenizer::FindToken(absl::string_view text) const {
  return table_->Find(text);
}

bool Tokenizer::IsControl(TokenId token) const {
  return table_->contains(token) && table_->kind(token) == TokenKind::kControl;
}

bool Tokenizer::IsSpecial(TokenId token) const {
  return IsControl(token) || (table_->contains(token) &&
                              table_->kind(token) == TokenKind::kUserDefined);
}

bool Tokenizer::EndsText(TokenId token) const {
  const std::vector<TokenId>& others = vocabulary().other_ends;
  return token == eos() ||
         std::find(others.begin(), others.end(), token) != others.end();
}

bool Tokenizer::adds_first_space() const {
  return vocabulary().kind == VocabularyKind::kSentencePiece &&
         vocabulary().add_space_prefix;
}

}  // namespace paged_kv::llm
