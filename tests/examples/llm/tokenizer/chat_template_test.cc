// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/chat_template.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/examples/llm/support/test_vocabularies.h"

namespace paged_kv::llm {
namespace {

constexpr ChatRole kSystem = ChatRole::kSystem;
constexpr ChatRole kUser = ChatRole::kUser;
constexpr ChatRole kAssistant = ChatRole::kAssistant;

// The conversation as one text, with <s> and </s> for BOS and EOS.
std::string Written(const ChatTemplate& chat,
                    const std::vector<ChatMessage>& messages) {
  const auto parts = chat.Write(messages);
  if (!parts.ok()) return parts.status().ToString();
  std::string text;
  for (const ChatPart& part : *parts) {
    if (part.kind == ChatPart::Kind::kBos) text += "<s>";
    if (part.kind == ChatPart::Kind::kEos) text += "</s>";
    text += part.text;
  }
  return text;
}

// As SmolLM2's and Qwen2.5's files have it, shortened.
constexpr char kSmolLm2[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != "
    "'system' %}{{ '<|im_start|>system\nYou are SmolLM<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}{% endfor %}";
constexpr char kQwen[] =
    "{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>' }}"
    "{{- '<|im_start|>system\\nYou are Qwen.<|im_end|>\\n' }}";

TEST(ChatTemplateTest, RecognisesFormatsAndDefaultSystemMessages) {
  const ChatTemplate smollm = ChatTemplate::Recognise(kSmolLm2);
  EXPECT_EQ(smollm.format, ChatFormat::kChatMl);
  EXPECT_EQ(smollm.default_system, "You are SmolLM");
  EXPECT_EQ(ChatTemplate::Recognise(kQwen).default_system, "You are Qwen.");
  const struct {
    const char* jinja;
    ChatFormat format;
  } cases[] = {{"", ChatFormat::kNone},
               {"{{ '<start_of_turn>' }}", ChatFormat::kNone},
               {"'<|user|>' x '<|end|>' '<|assistant|>'", ChatFormat::kNone},
               {"{{'<|im_start|>' + message['role']}}", ChatFormat::kChatMl},
               {"'[INST] ' '<<SYS>>' ", ChatFormat::kLlama2},
               {"'<|start_header_id|>'", ChatFormat::kLlama3},
               {"'<|user|>' eos_token '<|assistant|>'", ChatFormat::kZephyr}};
  for (const auto& c : cases) {
    EXPECT_EQ(ChatFormatName(ChatTemplate::Recognise(c.jinja).format),
              ChatFormatName(c.format))
        << c.jinja;
    EXPECT_EQ(ChatTemplate::Recognise(c.jinja).default_system, "");
  }
}

TEST(ChatTemplateTest, WritesChatMl) {
  const ChatTemplate chat{ChatFormat::kChatMl, "Be kind"};
  EXPECT_EQ(Written(chat, {{kUser, "Hi"}}),
            "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi"
            "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(Written(chat, {{kSystem, "S"}, {kUser, "Hi"}, {kAssistant, "Yo"}}),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, WritesLlama2) {
  const ChatTemplate chat{ChatFormat::kLlama2, ""};
  EXPECT_EQ(Written(chat, {{kUser, " Hi "}}), "<s>[INST] Hi [/INST]");
  EXPECT_EQ(
      Written(chat,
              {{kSystem, "S"}, {kUser, "A"}, {kAssistant, "B"}, {kUser, "C"}}),
      "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] B </s><s>[INST] C [/INST]");
}

TEST(ChatTemplateTest, WritesLlama3AndZephyr) {
  const std::vector<ChatMessage> messages = {{kSystem, "S"}, {kUser, "Hi\n"}};
  EXPECT_EQ(Written({ChatFormat::kLlama3, ""}, messages),
            "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(Written({ChatFormat::kZephyr, ""}, messages),
            "<|system|>\nS</s>\n<|user|>\nHi\n</s>\n<|assistant|>\n");
}

TEST(ChatTemplateTest, RefusesConversationsThatCannotBeWritten) {
  const auto code = [](ChatFormat format,
                       const std::vector<ChatMessage>& messages) {
    return ChatTemplate{format, ""}.Write(messages).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(ChatFormat::kChatMl, {}), kInvalid);
  EXPECT_EQ(code(ChatFormat::kChatMl, {{kUser, "a"}, {kSystem, "b"}}),
            kInvalid);
  EXPECT_EQ(code(ChatFormat::kLlama2, {{kUser, "a"}, {kUser, "b"}}), kInvalid);
  EXPECT_EQ(code(ChatFormat::kLlama2, {{kUser, "a"}, {kAssistant, "b"}}),
            kInvalid);
  EXPECT_EQ(code(ChatFormat::kLlama2, {{kSystem, "a"}}), kInvalid);
  EXPECT_EQ(code(ChatFormat::kNone, {{kUser, "a"}}),
            absl::StatusCode::kFailedPrecondition);
}

TEST(EncodeChatTest, UsersCannotWriteMarks) {
  Vocabulary vocabulary = ByteLevelVocabulary({}, "gpt-2");
  vocabulary.chat_template = "'<|im_start|>'";
  const TokenId start = *vocabulary.bos;
  const TokenId end = *vocabulary.eos;
  const auto tokenizer = Tokenizer::Create(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto tokens = EncodeChat(**tokenizer, {{kUser, "<|im_end|>"}});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  std::vector<TokenId> expected = {start};
  for (const char c : std::string("user\n<|im_end|>")) expected.push_back(c);
  expected.push_back(end);
  expected.push_back('\n');
  expected.push_back(start);
  for (const char c : std::string("assistant\n")) expected.push_back(c);
  EXPECT_EQ(*tokens, expected);
}

TEST(EncodeChatTest, BosOnceWhereTheModelWantsIt) {
  Vocabulary vocabulary = SentencePieceVocabulary({"\u2581"});
  vocabulary.chat_template = "'[INST]' '<<SYS>>'";
  auto tokenizer = Tokenizer::Create(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  auto tokens = EncodeChat(**tokenizer, {{kUser, "x"}});
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*tokens)[0], 1);
  EXPECT_NE((*tokens)[1], 1);
  vocabulary.chat_template = "'<|user|>' eos_token '<|assistant|>'";
  tokenizer = Tokenizer::Create(vocabulary);
  ASSERT_TRUE(tokenizer.ok());
  tokens = EncodeChat(**tokenizer, {{kUser, "x"}});
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*tokens)[0], 1);
  EXPECT_NE((*tokens)[1], 1);
}

}  // namespace
}  // namespace paged_kv::llm
