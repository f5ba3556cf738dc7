// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/token_table.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "docs/examples/llm/tokenizer/byte_alphabet.h"
#include "docs/examples/llm/tokenizer/utf8.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

absl::Status Contradiction(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", what));
}

absl::Status CheckSizes(const Vocabulary& vocabulary) {
  const size_t tokens = vocabulary.tokens.size();
  if (tokens == 0) return Contradiction("it has no tokens");
  if (tokens > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return Contradiction(absl::StrCat(tokens, " tokens are too many"));
  }
  if (vocabulary.token_kinds.size() != tokens) {
    return Contradiction(absl::StrCat(vocabulary.token_kinds.size(),
                                      " kinds of ", tokens, " tokens"));
  }
  if (vocabulary.kind == VocabularyKind::kSentencePiece &&
      vocabulary.scores.size() != tokens) {
    return Contradiction(absl::StrCat(vocabulary.scores.size(), " scores of ",
                                      tokens, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const Vocabulary& vocabulary) {
  const auto check = [&](const char* name, TokenId id) {
    if (id >= 0 && static_cast<size_t>(id) < vocabulary.tokens.size()) {
      return absl::OkStatus();
    }
    return Contradiction(absl::StrCat("token ", id, " (", name, ") of ",
                                      vocabulary.tokens.size()));
  };
  const std::pair<const char*, absl::optional<TokenId>> special[] = {
      {"BOS", vocabulary.bos},
      {"EOS", vocabulary.eos},
      {"unknown", vocabulary.unknown}};
  for (const auto& [name, id] : special) {
    if (id.has_value()) PAGED_KV_RETURN_IF_ERROR(check(name, *id));
  }
  for (const TokenId id : vocabulary.other_ends) {
    PAGED_KV_RETURN_IF_ERROR(check("end", id));
  }
  return absl::OkStatus();
}

// "<0x41>" as "A".
absl::StatusOr<std::string> ParseByteToken(absl::string_view text) {
  uint32_t byte = 0;
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>' ||
      !absl::SimpleHexAtoi(text.substr(3, 2), &byte)) {
    return Contradiction(absl::StrCat("the byte token \"", text, "\""));
  }
  return std::string(1, static_cast<char>(byte));
}

absl::StatusOr<std::string> BytesOf(const Vocabulary& vocabulary,
                                    size_t token) {
  const std::string& text = vocabulary.tokens[token];
  switch (vocabulary.token_kinds[token]) {
    case TokenKind::kControl:
      return std::string();
    case TokenKind::kUnknown:
      return std::string(kReplacementCharacter);
    case TokenKind::kByte:
      return ParseByteToken(text);
    case TokenKind::kUserDefined:
      // Spelled as itself by both kinds, but for SentencePiece's spaces.
      if (vocabulary.kind == VocabularyKind::kByteLevel) return text;
      break;
    case TokenKind::kNormal:
    case TokenKind::kUnused:
      break;
  }
  if (vocabulary.kind == VocabularyKind::kSentencePiece) {
    return absl::StrReplaceAll(text, {{"\u2581", " "}});
  }
  absl::optional<std::string> bytes = BytesOfSpelling(text);
  // Files pad their vocabulary with made-up texts, which no merge yields.
  return bytes.has_value() ? *std::move(bytes) : text;
}

}  // namespace

TokenTable::TokenTable(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  ids_.reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    ids_.emplace(vocabulary_.tokens[i], static_cast<TokenId>(i));
  }
}

absl::StatusOr<TokenTable> TokenTable::Create(Vocabulary vocabulary) {
  PAGED_KV_RETURN_IF_ERROR(CheckSizes(vocabulary));
  PAGED_KV_RETURN_IF_ERROR(CheckIds(vocabulary));
  TokenTable table(std::move(vocabulary));
  table.bytes_.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(std::string bytes, BytesOf(table.vocabulary_, i));
    table.bytes_.push_back(std::move(bytes));
  }
  return table;
}

absl::optional<TokenId> TokenTable::Find(absl::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return absl::nullopt;
  return found->second;
}

}  // namespace paged_kv::llm
