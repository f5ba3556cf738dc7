// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/byte_level_encoder.h"

#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "docs/examples/llm/tokenizer/merge_queue.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {

ByteLevelEncoder::ByteLevelEncoder(const TokenTable* table,
                                   PreTokenizer pre_tokenizer)
    : table_(table), pre_tokenizer_(std::move(pre_tokenizer)) {}

absl::StatusOr<std::unique_ptr<ByteLevelEncoder>> ByteLevelEncoder::Create(
    const TokenTable* table) {
  PAGED_KV_ASSIGN_OR_RETURN(
      PreTokenizer pre_tokenizer,
      PreTokenizer::Create(table->vocabulary().pre_tokenizer));
  auto encoder =
      absl::WrapUnique(new ByteLevelEncoder(table, std::move(pre_tokenizer)));
  encoder->AddBytesAndPieces();
  PAGED_KV_RETURN_IF_ERROR(encoder->AddMerges());
  return encoder;
}

void ByteLevelEncoder::AddBytesAndPieces() {
  for (size_t i = 0; i < table_->size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (table_->kind(token) != TokenKind::kNormal) continue;
    const absl::string_view bytes = table_->bytes(token);
    if (bytes.size() == 1) byte_tokens_[static_cast<uint8_t>(bytes[0])] = token;
    if (pre_tokenizer_.whole_pieces_first()) pieces_.emplace(bytes, token);
  }
}

absl::Status ByteLevelEncoder::AddMerges() {
  const std::vector<std::string>& merges = table_->vocabulary().merges;
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const absl::string_view merge = merges[rank];
    // The parts spell a space otherwise, so there is one, between them.
    const size_t space = merge.find(' ');
    const absl::string_view left = merge.substr(0, space);
    const absl::string_view right =
        space == absl::string_view::npos ? "" : merge.substr(space + 1);
    const absl::optional<TokenId> tokens[] = {
        table_->Find(left), table_->Find(right),
        table_->Find(absl::StrCat(left, right))};
    for (const absl::optional<TokenId>& token : tokens) {
      if (!token.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("vocabulary: merge ", rank, ", \"", merge,
                         "\", is not of two tokens into a third"));
      }
    }
    merges_.emplace(std::make_pair(*tokens[0], *tokens[1]),
                    MergeRule{static_cast<uint32_t>(rank), *tokens[2]});
  }
  return absl::OkStatus();
}

absl::Status ByteLevelEncoder::Encode(absl::string_view text,
                                      std::vector<TokenId>* tokens) const {
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<absl::string_view> pieces,
                            pre_tokenizer_.Split(text));
  for (const absl::string_view piece : pieces) {
    EncodePiece(piece, tokens);
  }
  return absl::OkStatus();
}

void ByteLevelEncoder::EncodePiece(absl::string_view piece,
                                   std::vector<TokenId>* tokens) const {
  if (const auto found = pieces_.find(piece); found != pieces_.end()) {
    tokens->push_back(found->second);
    return;
  }
  std::vector<TokenId> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const absl::optional<TokenId>& token =
        byte_tokens_[static_cast<uint8_t>(c)];
    if (token.has_value()) symbols.push_back(*token);
  }
  using TokenMerge = Merge<TokenId, uint32_t>;
  const auto merger = [this](TokenId left,
                             TokenId right) -> absl::optional<TokenMerge> {
    const auto found = merges_.find({left, right});
    if (found == merges_.end()) return absl::nullopt;
    return TokenMerge{found->second.merged, found->second.rank};
  };
  MergeSymbols<TokenId, uint32_t>(merger, &symbols);
  tokens->insert(tokens->end(), symbols.begin(), symbols.end());
}

}  // namespace paged_kv::llm
