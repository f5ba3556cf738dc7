// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/gguf_vocabulary.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/model_file/gguf_metadata.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

// Texts with which models end a turn whatever their file calls EOS: those of
// ChatML, Llama 3 and Gemma, and the end of text of GPT-2 and its heirs.
constexpr const char* kEndTexts[] = {"<|im_end|>", "<|eot_id|>",
                                     "<end_of_turn>", "<|endoftext|>",
                                     "<|end_of_text|>"};

std::string Key(absl::string_view name) {
  return absl::StrCat("tokenizer.ggml.", name);
}

absl::StatusOr<VocabularyKind> ReadKind(const GgufFile& file) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::string* model,
                            FindValue<std::string>(file, Key("model")));
  if (model == nullptr) {
    return absl::InvalidArgumentError("GGUF: there is no tokenizer.ggml.model");
  }
  if (*model == "llama") return VocabularyKind::kSentencePiece;
  if (*model == "gpt2") return VocabularyKind::kByteLevel;
  return absl::UnimplementedError(
      absl::StrCat("the tokenizer is ", *model, "; there are llama and gpt2"));
}

template <typename T>
absl::StatusOr<T> TakeArray(GgufFile* file, const std::string& key) {
  PAGED_KV_ASSIGN_OR_RETURN(const T* array, FindValue<T>(*file, key));
  if (array == nullptr) return T();
  return std::move(std::get<T>(file->metadata.find(key)->second));
}

absl::Status ReadScores(GgufFile* file, Vocabulary* vocabulary) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::vector<double> scores,
      TakeArray<std::vector<double>>(file, Key("scores")));
  for (const double score : scores) {
    vocabulary->scores.push_back(static_cast<float>(score));
  }
  return absl::OkStatus();
}

// Token types are numbered from 1 (enum llama_token_type).
absl::Status ReadTokenKinds(GgufFile* file, Vocabulary* vocabulary) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::vector<int64_t> types,
      TakeArray<std::vector<int64_t>>(file, Key("token_type")));
  for (const int64_t type : types) {
    if (type < 1 || type > 6) {
      return absl::InvalidArgumentError(
          absl::StrCat("GGUF: token type ", type, " is none of 1 to 6"));
    }
    vocabulary->token_kinds.push_back(static_cast<TokenKind>(type - 1));
  }
  if (types.empty()) {
    vocabulary->token_kinds.assign(vocabulary->tokens.size(),
                                   TokenKind::kNormal);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<TokenId>> ReadId(const GgufFile& file,
                                               absl::string_view name) {
  PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<uint32_t> id,
                            FindUint32(file, Key(name)));
  // All bits set is how "none" is written.
  if (!id.has_value() || *id == std::numeric_limits<uint32_t>::max()) {
    return absl::optional<TokenId>();
  }
  if (*id > static_cast<uint32_t>(std::numeric_limits<TokenId>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("GGUF: ", Key(name), " is ", *id));
  }
  return absl::optional<TokenId>(static_cast<TokenId>(*id));
}

absl::Status ReadEnds(const GgufFile& file, Vocabulary* vocabulary) {
  for (const char* name : {"eot_token_id", "eom_token_id"}) {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<TokenId> id,
                              ReadId(file, name));
    if (id.has_value()) vocabulary->other_ends.push_back(*id);
  }
  for (size_t i = 0; i < vocabulary->tokens.size(); ++i) {
    if (i >= vocabulary->token_kinds.size() ||
        vocabulary->token_kinds[i] != TokenKind::kControl) {
      continue;
    }
    for (const char* text : kEndTexts) {
      if (vocabulary->tokens[i] == text) {
        vocabulary->other_ends.push_back(static_cast<TokenId>(i));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFlags(const GgufFile& file, Vocabulary* vocabulary) {
  const bool is_sentence_piece =
      vocabulary->kind == VocabularyKind::kSentencePiece;
  PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<bool> bos,
                            FindBool(file, Key("add_bos_token")));
  PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<bool> eos,
                            FindBool(file, Key("add_eos_token")));
  PAGED_KV_ASSIGN_OR_RETURN(const absl::optional<bool> space,
                            FindBool(file, Key("add_space_prefix")));
  // Llama 3 writes BOS as Llama does, and its files may leave that unsaid.
  vocabulary->add_bos = bos.value_or(is_sentence_piece ||
                                     vocabulary->pre_tokenizer == "llama-bpe");
  vocabulary->add_eos = eos.value_or(false);
  vocabulary->add_space_prefix = is_sentence_piece && space.value_or(true);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Vocabulary> TakeGgufVocabulary(GgufFile* file) {
  Vocabulary vocabulary;
  PAGED_KV_ASSIGN_OR_RETURN(
      vocabulary.tokens,
      TakeArray<std::vector<std::string>>(file, Key("tokens")));
  if (vocabulary.tokens.empty()) return vocabulary;
  PAGED_KV_ASSIGN_OR_RETURN(vocabulary.kind, ReadKind(*file));
  PAGED_KV_RETURN_IF_ERROR(ReadScores(file, &vocabulary));
  PAGED_KV_RETURN_IF_ERROR(ReadTokenKinds(file, &vocabulary));
  PAGED_KV_ASSIGN_OR_RETURN(
      vocabulary.merges,
      TakeArray<std::vector<std::string>>(file, Key("merges")));
  PAGED_KV_ASSIGN_OR_RETURN(const std::string* pre,
                            FindValue<std::string>(*file, Key("pre")));
  if (pre != nullptr) vocabulary.pre_tokenizer = *pre;
  PAGED_KV_RETURN_IF_ERROR(ReadFlags(*file, &vocabulary));
  PAGED_KV_ASSIGN_OR_RETURN(vocabulary.bos, ReadId(*file, "bos_token_id"));
  PAGED_KV_ASSIGN_OR_RETURN(vocabulary.eos, ReadId(*file, "eos_token_id"));
  PAGED_KV_ASSIGN_OR_RETURN(vocabulary.unknown,
                            ReadId(*file, "unknown_token_id"));
  PAGED_KV_RETURN_IF_ERROR(ReadEnds(*file, &vocabulary));
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::string* chat,
      FindValue<std::string>(*file, "tokenizer.chat_template"));
  if (chat != nullptr) vocabulary.chat_template = *chat;
  return vocabulary;
}

}  // namespace paged_kv::llm
