// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Model files say in Jinja how a conversation is written for the model. This is
// no Jinja: it knows the formats below and recognises them by their marks.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

enum class ChatFormat : uint8_t {
  kNone,    // not a chat model, or a template that is none of these
  kChatMl,  // <|im_start|>role\ntext<|im_end|>\n: SmolLM2, Qwen2
  kLlama2,  // <s>[INST] <<SYS>>\nsystem\n<</SYS>>\n\nuser [/INST] answer </s>
  kLlama3,  // <|start_header_id|>role<|end_header_id|>\n\ntext<|eot_id|>
  kZephyr,  // <|role|>\ntext</s>\n: Zephyr, TinyLlama
};

const char* ChatFormatName(ChatFormat format);

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string text;
};

// A part of a written conversation. Marks are the template's own, and may be
// special tokens; text never is, whatever a user wrote there.
struct ChatPart {
  enum class Kind : uint8_t { kText, kMark, kBos, kEos };
  Kind kind = Kind::kText;
  std::string text;  // of kText and kMark
};

// How one model writes conversations.
struct ChatTemplate {
  ChatFormat format = ChatFormat::kNone;
  // The system message that the template gives to a conversation without one,
  // or empty.
  std::string default_system;

  // By the marks in the template text of a model file.
  static ChatTemplate Recognise(absl::string_view jinja);

  // The conversation as the model expects it, up to where its answer begins.
  // Neighbouring parts differ in kind. InvalidArgument: no messages, a system
  // message that is not the first, or, as kLlama2 needs it, not user and
  // assistant in turn, or an assistant's message last. FailedPrecondition: the
  // format is kNone.
  absl::StatusOr<std::vector<ChatPart>> Write(
      absl::Span<const ChatMessage> messages) const;
};

// The tokens of a conversation, by the chat template of the tokenizer's
// vocabulary. Errors as Write and Encode.
absl::StatusOr<std::vector<TokenId>> EncodeChat(
    const Tokenizer& tokenizer, absl::Span<const ChatMessage> messages);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_
