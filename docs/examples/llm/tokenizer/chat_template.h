// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Model files say in Jinja how a conversation is written for the model. This is
// no Jinja: it knows the formats below and recognises them by their marks.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace paged_kv::llm {

enum class ChatFormat : uint8_t {
  kNone,    // not a chat model, or a template that is none of these
  kChatMl,  // <|im_start|>role\ntext<|im_end|>\n : SmolLM2, Qwen2
  kLlama2,  // [INST] <<SYS>>\nsystem\n<</SYS>>\n\nuser [/INST] answer </s>
  kLlama3,  // <|start_header_id|>role<|end_header_id|>\n\ntext<|eot_id|>
  kZephyr,  // <|role|>\ntext</s>\n : Zephyr, TinyLlama
};

const char* ChatFormatName(ChatFormat format);

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string text;
};

// How one model writes conversations.
struct ChatTemplate {
  ChatFormat format = ChatFormat::kNone;
  // The system message that the template adds to a conversation without one,
  // or empty.
  std::string default_system;

  // By the marks in the template text of a model file.
  static ChatTemplate Recognise(absl::string_view jinja);

  // The conversation as the model expects it, up to where its answer begins.
  // To be encoded with `parse_special`, and without BOS where the text begins
  // with one: it does not. InvalidArgument: no messages, a system message that
  // is not the first, or roles of user and assistant that do not alternate
  // where the format requires it, or text that contains one of the format's
  // marks. FailedPrecondition: the format is kNone.
  absl::StatusOr<std::string> Format(
      absl::Span<const ChatMessage> messages) const;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_CHAT_TEMPLATE_H_
