// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "docs/examples/llm/model_file/llama2c_model.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

constexpr TokenId kUnknown = 0;
constexpr TokenId kBos = 1;
constexpr TokenId kEos = 2;
constexpr uint32_t kFirstByte = 3;
constexpr uint32_t kFirstPiece = kFirstByte + 256;

TokenKind KindOf(uint32_t token) {
  if (token == kUnknown) return TokenKind::kUnknown;
  if (token < kFirstByte) return TokenKind::kControl;
  return token < kFirstPiece ? TokenKind::kByte : TokenKind::kNormal;
}

}  // namespace

// An int32 (the longest token), then for each token its score in f32, an int32
// length and the text, in which SentencePiece's U+2581 has become a space.
absl::StatusOr<Vocabulary> LoadLlama2cVocabulary(const ByteSource& source,
                                                 uint32_t size) {
  ByteCursor cursor(&source);
  PAGED_KV_RETURN_IF_ERROR(cursor.Read<int32_t>().status());
  if (size > cursor.remaining() / (sizeof(float) + sizeof(int32_t))) {
    return absl::InvalidArgumentError(
        absl::StrCat("llama2.c vocabulary: ", size, " tokens in ",
                     cursor.remaining(), " bytes"));
  }
  Vocabulary vocabulary;
  for (uint32_t i = 0; i < size; ++i) {
    PAGED_KV_ASSIGN_OR_RETURN(const float score, cursor.Read<float>());
    PAGED_KV_ASSIGN_OR_RETURN(const int32_t length, cursor.Read<int32_t>());
    if (length < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "llama2.c vocabulary: token ", i, " has length ", length));
    }
    PAGED_KV_ASSIGN_OR_RETURN(const std::string text,
                              cursor.ReadString(static_cast<uint64_t>(length)));
    vocabulary.scores.push_back(score);
    vocabulary.token_kinds.push_back(KindOf(i));
    // BOS and EOS are "\n<s>\n" and "\n</s>\n" here.
    vocabulary.tokens.push_back(
        vocabulary.token_kinds.back() == TokenKind::kControl
            ? std::string(absl::StripAsciiWhitespace(text))
            : absl::StrReplaceAll(text, {{" ", "\u2581"}}));
  }
  if (cursor.remaining() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("llama2.c vocabulary: ", cursor.remaining(),
                     " bytes after token ", size));
  }
  vocabulary.unknown = kUnknown;
  vocabulary.bos = kBos;
  vocabulary.eos = kEos;
  // Its models were trained on texts with BOS between them.
  vocabulary.other_ends = {kBos};
  return vocabulary;
}

}  // namespace paged_kv::llm
