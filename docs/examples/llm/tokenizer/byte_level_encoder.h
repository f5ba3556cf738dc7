// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_LEVEL_ENCODER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_LEVEL_ENCODER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/tokenizer/pre_tokenizer.h"
#include "docs/examples/llm/tokenizer/text_encoder.h"
#include "docs/examples/llm/tokenizer/token_table.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// GPT-2's byte-level BPE (Radford et al. 2019): a pattern cuts the text into
// pieces; within each, bytes merge in the order of the merge list. No
// normalisation: Qwen2's original also composes characters (NFC) first.
//
// Bytes that the vocabulary has no token for are left out, as the originals do:
// SmolLM2 has none for a few control characters, and for 0xF1 and 0xF2, with
// which only unassigned characters begin.
class ByteLevelEncoder : public TextEncoder {
 public:
  // `table` must outlive the encoder. InvalidArgument: a merge of texts, or
  // into one, that is no token. Unimplemented: an unknown pattern.
  static absl::StatusOr<std::unique_ptr<ByteLevelEncoder>> Create(
      const TokenTable* table);

  absl::Status Encode(absl::string_view text,
                      std::vector<TokenId>* tokens) const override;

 private:
  struct MergeRule {
    uint32_t rank;
    TokenId merged;
  };

  ByteLevelEncoder(const TokenTable* table, PreTokenizer pre_tokenizer);

  absl::Status AddMerges();
  void AddBytesAndPieces();
  void EncodePiece(absl::string_view piece, std::vector<TokenId>* tokens) const;

  const TokenTable* table_;
  PreTokenizer pre_tokenizer_;
  std::array<absl::optional<TokenId>, 256> byte_tokens_;
  absl::flat_hash_map<std::pair<TokenId, TokenId>, MergeRule> merges_;
  // Bytes of all normal tokens; only where whole pieces go first.
  absl::flat_hash_map<absl::string_view, TokenId> pieces_;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_LEVEL_ENCODER_H_
