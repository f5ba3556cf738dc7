// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/pre_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/examples/llm/support/random_text.h"
#include "tests/paged_kv/test_seed.h"

namespace paged_kv::llm {
namespace {

// The pieces with bars between them.
std::string Split(const std::string& name, const std::string& text) {
  const auto pre_tokenizer = PreTokenizer::Create(name);
  if (!pre_tokenizer.ok()) return pre_tokenizer.status().ToString();
  const auto pieces = pre_tokenizer->Split(text);
  return pieces.ok() ? absl::StrJoin(*pieces, "|") : "error";
}

TEST(PreTokenizerTest, Gpt2) {
  EXPECT_EQ(Split("gpt-2", "Hello, it's  1234 days."),
            "Hello|,| it|'s| | 1234| days|.");
  EXPECT_EQ(Split("gpt-2", "a\n\n  b\t"), "a|\n\n | b|\t");
  EXPECT_EQ(Split("gpt-2", "IT'S"), "IT|'|S");
  EXPECT_EQ(Split("gpt-2", "na\u00efve \u65e5\u672c \u00bd!?"),
            "na\u00efve| \u65e5\u672c| \u00bd|!?");
  EXPECT_EQ(Split("gpt-2", ""), "");
}

TEST(PreTokenizerTest, SmolLmCutsDigitsOutFirst) {
  EXPECT_EQ(Split("smollm", "x  1234 y"), "x|  |1|2|3|4| y");
  // Without the digit, the last space would stay with it.
  EXPECT_EQ(Split("smollm", "in 2024"), "in| |2|0|2|4");
  EXPECT_EQ(Split("smollm", "\u0663\u00b2\u2167"), "\u0663|\u00b2|\u2167");
}

TEST(PreTokenizerTest, Qwen2AndLlama3) {
  EXPECT_EQ(Split("qwen2", "It'S 1234 (x)\n\n  y"),
            "It|'S| |1|2|3|4| (|x|)\n\n| | y");
  EXPECT_EQ(Split("llama-bpe", "It'S 1234 (x)\n\n  y"),
            "It|'S| |123|4| (|x|)\n\n| | y");
  EXPECT_EQ(Split("qwen2", "a  \n b\r\n"), "a|  \n| b|\r\n");
}

TEST(PreTokenizerTest, SpaceIsWhiteSpaceOfUnicode) {
  EXPECT_EQ(Split("gpt-2", "a\u3000\u00a0b"), "a|\u3000|\u00a0|b");
  // U+180E and U+200B are none.
  EXPECT_EQ(Split("gpt-2", "!\u180e!"), "!\u180e!");
  EXPECT_EQ(Split("gpt-2", "!\u200b!"), "!\u200b!");
  EXPECT_EQ(Split("gpt-2", "!\u0085!"), "!|\u0085|!");
}

TEST(PreTokenizerTest, PiecesAreTheWholeText) {
  std::mt19937_64 random(TestSeed(24));
  for (const char* name : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    const auto pre_tokenizer = PreTokenizer::Create(name);
    ASSERT_TRUE(pre_tokenizer.ok());
    for (int i = 0; i < 2000; ++i) {
      const std::string text = RandomText(60, &random);
      const auto pieces = pre_tokenizer->Split(text);
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      ASSERT_EQ(absl::StrJoin(*pieces, ""), text);
      for (const absl::string_view piece : *pieces) ASSERT_FALSE(piece.empty());
    }
  }
}

TEST(PreTokenizerTest, LongRunsAreSplitInLittleTime) {
  for (const char* name : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    EXPECT_EQ(Split(name, std::string(1 << 20, ' ')).size(), size_t{1} << 20);
    EXPECT_EQ(Split(name, std::string(1 << 20, 'a')).size(), size_t{1} << 20);
    // All but the last space, which goes with the letter.
    EXPECT_EQ(Split(name, std::string(1 << 20, ' ') + "b").size(),
              (size_t{1} << 20) + 2);
  }
}

TEST(PreTokenizerTest, NamesWhatItDoesNotKnow) {
  const auto unknown = PreTokenizer::Create("deepseek-coder");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(unknown.status().message().find("deepseek-coder"),
            absl::string_view::npos);
}

TEST(SplitPatternTest, SaysWhereAPatternIsWrong) {
  const auto pattern = SplitPattern::Create("a(b");
  EXPECT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(pattern.status().message().find("at character 3"),
            absl::string_view::npos);
}

TEST(SplitPatternTest, EmptyMatchesCutNothing) {
  const auto pattern = SplitPattern::Create("x*");
  ASSERT_TRUE(pattern.ok());
  std::vector<absl::string_view> pieces;
  ASSERT_TRUE(pattern->Split("a\u00e9xxb", &pieces).ok());
  EXPECT_EQ(absl::StrJoin(pieces, "|"), "a\u00e9|xx|b");
}

}  // namespace
}  // namespace paged_kv::llm
