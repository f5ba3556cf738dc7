// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SENTENCE_PIECE_ENCODER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SENTENCE_PIECE_ENCODER_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/tokenizer/text_encoder.h"
#include "docs/examples/llm/tokenizer/token_table.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// SentencePiece's BPE (Kudo and Richardson 2018, arXiv:1808.06226) as Llama's
// vocabularies use it: no normalisation but that spaces become U+2581 and, if
// the vocabulary says so, a text starts with one; neighbours whose union is a
// piece merge, the highest score first; characters that are no piece become
// their bytes' tokens, or the unknown token where there are none.
//
// A U+2581 in the text is a space afterwards, as in SentencePiece.
class SentencePieceEncoder : public TextEncoder {
 public:
  // `table` must outlive this.
  explicit SentencePieceEncoder(const TokenTable* table);

  absl::Status Encode(absl::string_view text,
                      std::vector<TokenId>* tokens) const override;

 private:
  // A normal piece; control tokens and such are never made from text.
  absl::optional<TokenId> FindPiece(absl::string_view text) const;
  absl::Status AppendBytes(absl::string_view character,
                           std::vector<TokenId>* tokens) const;

  const TokenTable* table_;
  std::array<absl::optional<TokenId>, 256> byte_tokens_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_SENTENCE_PIECE_ENCODER_H_
