// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/sentence_piece_encoder.h"

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "docs/examples/llm/tokenizer/merge_queue.h"
#include "docs/examples/llm/tokenizer/utf8.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr char kSpace[] = "\xE2\x96\x81";  // U+2581

}  // namespace

SentencePieceEncoder::SentencePieceEncoder(const TokenTable* table)
    : table_(table) {
  for (size_t i = 0; i < table->size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (table->kind(token) != TokenKind::kByte) continue;
    byte_tokens_[static_cast<uint8_t>(table->bytes(token)[0])] = token;
  }
}

absl::optional<TokenId> SentencePieceEncoder::FindPiece(
    absl::string_view text) const {
  const absl::optional<TokenId> token = table_->Find(text);
  if (!token.has_value()) return absl::nullopt;
  const TokenKind kind = table_->kind(*token);
  if (kind == TokenKind::kNormal || kind == TokenKind::kUserDefined) {
    return token;
  }
  return absl::nullopt;
}

absl::Status SentencePieceEncoder::AppendBytes(
    absl::string_view character, std::vector<TokenId>* tokens) const {
  bool all_bytes = true;
  for (const char byte : character) {
    all_bytes &= byte_tokens_[static_cast<uint8_t>(byte)].has_value();
  }
  if (all_bytes) {
    for (const char byte : character) {
      tokens->push_back(*byte_tokens_[static_cast<uint8_t>(byte)]);
    }
    return absl::OkStatus();
  }
  const absl::optional<TokenId> unknown = table_->vocabulary().unknown;
  if (!unknown.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has no token for \"",
                     absl::CHexEscape(character), "\""));
  }
  tokens->push_back(*unknown);
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::Encode(absl::string_view text,
                                          std::vector<TokenId>* tokens) const {
  if (text.empty()) return absl::OkStatus();
  const std::string spaced =
      absl::StrCat(table_->vocabulary().add_space_prefix ? kSpace : "",
                   absl::StrReplaceAll(text, {{" ", kSpace}}));

  // Views into `spaced`, which neighbours continue.
  std::vector<absl::string_view> pieces;
  for (size_t i = 0; i < spaced.size(); i += pieces.back().size()) {
    const absl::string_view rest = absl::string_view(spaced).substr(i);
    pieces.push_back(rest.substr(0, NextUtf8(rest).bytes));
  }
  using PieceMerge = Merge<absl::string_view, float>;
  const auto merger =
      [this](absl::string_view left,
             absl::string_view right) -> absl::optional<PieceMerge> {
    const absl::string_view both(left.data(), left.size() + right.size());
    const absl::optional<TokenId> token = FindPiece(both);
    if (!token.has_value()) return absl::nullopt;
    const float score =
        table_->vocabulary().scores[static_cast<size_t>(*token)];
    return PieceMerge{both, -score};
  };
  MergeSymbols<absl::string_view, float>(merger, &pieces);

  for (const absl::string_view piece : pieces) {
    if (const absl::optional<TokenId> token = FindPiece(piece)) {
      tokens->push_back(*token);
    } else {
      PAGED_KV_RETURN_IF_ERROR(AppendBytes(piece, tokens));
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::llm
