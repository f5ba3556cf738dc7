// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_VOCABULARY_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

enum class VocabularyKind : uint8_t {
  // SentencePiece's BPE: pieces with scores, spaces as U+2581, and one token
  // for each byte that no piece covers.
  kSentencePiece,
  // GPT-2's BPE over bytes: ranked merges within the pieces that a pattern
  // splits the text into.
  kByteLevel,
};

enum class TokenKind : uint8_t {
  kNormal,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte
};

// What a tokenizer is made from, as model files hold it. Plain data.
struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kSentencePiece;
  // [tokens] The text by id, in the kind's own spelling: SentencePiece's
  // U+2581 and <0x41>, GPT-2's printable characters for bytes.
  std::vector<std::string> tokens;
  std::vector<float> scores;           // [tokens]; SentencePiece only
  std::vector<TokenKind> token_kinds;  // [tokens]
  std::vector<std::string> merges;     // "left right" by rank; byte level only
  // Name of the splitting pattern (tokenizer.ggml.pre); byte level only.
  std::string pre_tokenizer;
  bool add_space_prefix = true;  // SentencePiece only
  bool add_bos = true;           // what Encode's default does
  bool add_eos = false;
  absl::optional<TokenId> bos;
  absl::optional<TokenId> eos;
  absl::optional<TokenId> unknown;
  // Besides `eos`, what ends a text: an end-of-turn token, or BOS where the
  // model was trained on texts that only BOS separates.
  std::vector<TokenId> other_ends;
  std::string chat_template;  // Jinja text, empty if there is none
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_VOCABULARY_H_
