// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TEST_VOCABULARIES_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TEST_VOCABULARIES_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "docs/examples/llm/tokenizer/utf8.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"

namespace paged_kv::llm {

inline TokenId AddToken(Vocabulary* vocabulary, const std::string& text,
                        TokenKind kind = TokenKind::kNormal, float score = 0) {
  vocabulary->tokens.push_back(text);
  vocabulary->token_kinds.push_back(kind);
  if (vocabulary->kind == VocabularyKind::kSentencePiece) {
    vocabulary->scores.push_back(score);
  }
  return static_cast<TokenId>(vocabulary->tokens.size() - 1);
}

// <unk>, <s>, </s>, all bytes, and the pieces, the first with the best score.
inline Vocabulary SentencePieceVocabulary(
    const std::vector<std::string>& pieces) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kSentencePiece;
  vocabulary.unknown = AddToken(&vocabulary, "<unk>", TokenKind::kUnknown);
  vocabulary.bos = AddToken(&vocabulary, "<s>", TokenKind::kControl);
  vocabulary.eos = AddToken(&vocabulary, "</s>", TokenKind::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    AddToken(&vocabulary, text, TokenKind::kByte);
  }
  float score = 0;
  for (const std::string& piece : pieces) {
    AddToken(&vocabulary, piece, TokenKind::kNormal, score);
    score -= 1;
  }
  return vocabulary;
}

// How GPT-2 spells a byte, worked out anew: printable Latin-1 as it is, the
// others counted up from U+0100.
inline std::string SpellByte(int byte) {
  const auto is_printed = [](int b) {
    return (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
  };
  uint32_t code_point = static_cast<uint32_t>(byte);
  if (!is_printed(byte)) {
    code_point = 0x100;
    for (int b = 0; b < byte; ++b) code_point += is_printed(b) ? 0 : 1;
  }
  std::string text;
  AppendUtf8(code_point, &text);
  return text;
}

inline std::string Spell(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += SpellByte(static_cast<uint8_t>(c));
  return text;
}

// All bytes (token = byte), then what each merge "left right" makes (in plain
// bytes, not spelled), then <|im_start|> and <|im_end|>, which is EOS.
inline Vocabulary ByteLevelVocabulary(
    const std::vector<std::pair<std::string, std::string>>& merges,
    const std::string& pre_tokenizer) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kByteLevel;
  vocabulary.pre_tokenizer = pre_tokenizer;
  vocabulary.add_bos = false;
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(&vocabulary, SpellByte(byte));
  }
  for (const auto& [left, right] : merges) {
    AddToken(&vocabulary, Spell(left) + Spell(right));
    vocabulary.merges.push_back(Spell(left) + " " + Spell(right));
  }
  vocabulary.bos = AddToken(&vocabulary, "<|im_start|>", TokenKind::kControl);
  vocabulary.eos = AddToken(&vocabulary, "<|im_end|>", TokenKind::kControl);
  return vocabulary;
}

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_TEST_VOCABULARIES_H_
