// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/chat_template.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

using Kind = ChatPart::Kind;

const char* RoleName(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kUser:
      return "user";
    case ChatRole::kAssistant:
      return "assistant";
  }
  return "";
}

// Joins neighbours of one kind: tokens do not begin where a part happens to.
class PartList {
 public:
  void Add(Kind kind, absl::string_view text = "") {
    if (!parts_.empty() && parts_.back().kind == kind) {
      absl::StrAppend(&parts_.back().text, text);
    } else {
      parts_.push_back({kind, std::string(text)});
    }
  }
  std::vector<ChatPart> Take() { return std::move(parts_); }

 private:
  std::vector<ChatPart> parts_;
};

// The literal text between <|im_start|>system and <|im_end|> in a template.
// Jinja's expressions there, in braces and quotes, are for messages given.
std::string DefaultChatMlSystem(absl::string_view jinja) {
  constexpr absl::string_view kStart = "<|im_start|>system";
  constexpr absl::string_view kEnd = "<|im_end|>";
  for (size_t at = jinja.find(kStart); at != absl::string_view::npos;
       at = jinja.find(kStart, at + 1)) {
    absl::string_view text = jinja.substr(at + kStart.size());
    // A line feed, or a string's escape for one.
    if (absl::StartsWith(text, "\\n")) {
      text.remove_prefix(2);
    } else if (absl::StartsWith(text, "\n")) {
      text.remove_prefix(1);
    } else {
      continue;
    }
    const size_t end = text.find(kEnd);
    if (end == absl::string_view::npos || end == 0) continue;
    text = text.substr(0, end);
    if (text.find_first_of("'\"{}") == absl::string_view::npos) {
      return std::string(text);
    }
  }
  return "";
}

void WriteChatMl(absl::Span<const ChatMessage> messages, PartList* parts) {
  for (const ChatMessage& message : messages) {
    parts->Add(Kind::kMark, "<|im_start|>");
    parts->Add(Kind::kText,
               absl::StrCat(RoleName(message.role), "\n", message.text));
    parts->Add(Kind::kMark, "<|im_end|>");
    parts->Add(Kind::kText, "\n");
  }
  parts->Add(Kind::kMark, "<|im_start|>");
  parts->Add(Kind::kText, "assistant\n");
}

void WriteLlama3(absl::Span<const ChatMessage> messages, PartList* parts) {
  const auto header = [&](ChatRole role) {
    parts->Add(Kind::kMark, "<|start_header_id|>");
    parts->Add(Kind::kText, RoleName(role));
    parts->Add(Kind::kMark, "<|end_header_id|>");
    parts->Add(Kind::kText, "\n\n");
  };
  for (const ChatMessage& message : messages) {
    header(message.role);
    parts->Add(Kind::kText, absl::StripAsciiWhitespace(message.text));
    parts->Add(Kind::kMark, "<|eot_id|>");
  }
  header(ChatRole::kAssistant);
}

void WriteZephyr(absl::Span<const ChatMessage> messages, PartList* parts) {
  for (const ChatMessage& message : messages) {
    parts->Add(Kind::kText, absl::StrCat("<|", RoleName(message.role), "|>\n",
                                         message.text));
    parts->Add(Kind::kEos);
    parts->Add(Kind::kText, "\n");
  }
  parts->Add(Kind::kText, "<|assistant|>\n");
}

absl::Status WriteLlama2(absl::Span<const ChatMessage> messages,
                         PartList* parts) {
  std::string system;
  if (messages[0].role == ChatRole::kSystem) {
    system = absl::StrCat("<<SYS>>\n", messages[0].text, "\n<</SYS>>\n\n");
    messages.remove_prefix(1);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool is_user = i % 2 == 0;
    if ((messages[i].role == ChatRole::kUser) != is_user) {
      return absl::InvalidArgumentError(
          absl::StrCat("message ", i, " is the ", RoleName(messages[i].role),
                       "'s: user and assistant have to take turns"));
    }
    const absl::string_view text = absl::StripAsciiWhitespace(messages[i].text);
    if (is_user) {
      parts->Add(Kind::kBos);
      parts->Add(Kind::kText, absl::StrCat("[INST] ", i == 0 ? system : "",
                                           text, " [/INST]"));
    } else {
      parts->Add(Kind::kText, absl::StrCat(" ", text, " "));
      parts->Add(Kind::kEos);
    }
  }
  if (messages.size() % 2 == 0) {
    return absl::InvalidArgumentError("the last message is not the user's");
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(absl::Span<const ChatMessage> messages) {
  if (messages.empty()) {
    return absl::InvalidArgumentError("a conversation without messages");
  }
  for (size_t i = 1; i < messages.size(); ++i) {
    if (messages[i].role == ChatRole::kSystem) {
      return absl::InvalidArgumentError(absl::StrCat(
          "message ", i, " is the system's, which may be the first only"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* ChatFormatName(ChatFormat format) {
  switch (format) {
    case ChatFormat::kNone:
      return "none";
    case ChatFormat::kChatMl:
      return "chatml";
    case ChatFormat::kLlama2:
      return "llama2";
    case ChatFormat::kLlama3:
      return "llama3";
    case ChatFormat::kZephyr:
      return "zephyr";
  }
  return "";
}

ChatTemplate ChatTemplate::Recognise(absl::string_view jinja) {
  const auto has = [&](absl::string_view mark) {
    return absl::StrContains(jinja, mark);
  };
  if (has("<|im_start|>")) {
    return {ChatFormat::kChatMl, DefaultChatMlSystem(jinja)};
  }
  if (has("<|start_header_id|>")) return {ChatFormat::kLlama3, ""};
  if (has("[INST]") && has("<<SYS>>")) return {ChatFormat::kLlama2, ""};
  // Others mark roles so too, but end messages with a mark of their own.
  if (has("<|user|>") && has("<|assistant|>") && has("eos_token")) {
    return {ChatFormat::kZephyr, ""};
  }
  return {};
}

absl::StatusOr<std::vector<ChatPart>> ChatTemplate::Write(
    absl::Span<const ChatMessage> messages) const {
  PAGED_KV_RETURN_IF_ERROR(CheckMessages(messages));
  std::vector<ChatMessage> with_system;
  if (!default_system.empty() && messages[0].role != ChatRole::kSystem) {
    with_system.push_back({ChatRole::kSystem, default_system});
    with_system.insert(with_system.end(), messages.begin(), messages.end());
    messages = with_system;
  }
  PartList parts;
  switch (format) {
    case ChatFormat::kNone:
      return absl::FailedPreconditionError(
          "the model has no chat template, or one that is not known");
    case ChatFormat::kChatMl:
      WriteChatMl(messages, &parts);
      break;
    case ChatFormat::kLlama2:
      PAGED_KV_RETURN_IF_ERROR(WriteLlama2(messages, &parts));
      break;
    case ChatFormat::kLlama3:
      WriteLlama3(messages, &parts);
      break;
    case ChatFormat::kZephyr:
      WriteZephyr(messages, &parts);
      break;
  }
  return parts.Take();
}

absl::StatusOr<std::vector<TokenId>> EncodeChat(
    const Tokenizer& tokenizer, absl::Span<const ChatMessage> messages) {
  const ChatTemplate chat =
      ChatTemplate::Recognise(tokenizer.vocabulary().chat_template);
  PAGED_KV_ASSIGN_OR_RETURN(const std::vector<ChatPart> parts,
                            chat.Write(messages));
  std::vector<TokenId> tokens;
  // Llama 2's format brings its own BOS.
  if (parts[0].kind != Kind::kBos && tokenizer.vocabulary().add_bos &&
      tokenizer.bos().has_value()) {
    tokens.push_back(*tokenizer.bos());
  }
  for (const ChatPart& part : parts) {
    if (part.kind == Kind::kBos || part.kind == Kind::kEos) {
      const absl::optional<TokenId> token =
          part.kind == Kind::kBos ? tokenizer.bos() : tokenizer.eos();
      if (token.has_value()) tokens.push_back(*token);
      continue;
    }
    PAGED_KV_ASSIGN_OR_RETURN(
        const std::vector<TokenId> encoded,
        tokenizer.Encode(part.text, {AddBos::kNo, part.kind == Kind::kMark}));
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  }
  return tokens;
}

}  // namespace paged_kv::llm
