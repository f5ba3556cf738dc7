// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/special_tokens.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"

namespace paged_kv::llm {

SpecialTokens::SpecialTokens(const TokenTable* table) : table_(table) {
  for (size_t i = 0; i < table->size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    const TokenKind kind = table->kind(token);
    const absl::string_view text = table->text(token);
    if (text.empty() ||
        (kind != TokenKind::kControl && kind != TokenKind::kUserDefined)) {
      continue;
    }
    tokens_[static_cast<uint8_t>(text[0])].push_back(token);
  }
  for (std::vector<TokenId>& tokens : tokens_) {
    std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
      return table->text(a).size() > table->text(b).size();
    });
  }
}

absl::optional<TokenId> SpecialTokens::Match(absl::string_view text,
                                             bool with_control) const {
  for (const TokenId token : tokens_[static_cast<uint8_t>(text[0])]) {
    if (!with_control && table_->kind(token) == TokenKind::kControl) continue;
    if (absl::StartsWith(text, table_->text(token))) return token;
  }
  return absl::nullopt;
}

std::vector<SpecialTokens::Part> SpecialTokens::Split(absl::string_view text,
                                                      bool with_control) const {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const absl::optional<TokenId> token = Match(text.substr(i), with_control);
    if (!token.has_value()) {
      ++i;
      continue;
    }
    if (i > done) parts.push_back({text.substr(done, i - done), {}});
    const size_t length = table_->text(*token).size();
    parts.push_back({text.substr(i, length), token});
    done = i += length;
  }
  if (done < text.size()) parts.push_back({text.substr(done), {}});
  return parts;
}

}  // namespace paged_kv::llm
