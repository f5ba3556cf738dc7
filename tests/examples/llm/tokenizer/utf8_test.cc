// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/tokenizer/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace paged_kv::llm {
namespace {

TEST(Utf8Test, EveryCodePointGoesThereAndBack) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Step step = NextUtf8(text);
    if (code_point >= 0xD800 && code_point <= 0xDFFF) {
      ASSERT_EQ(step.kind, Utf8Kind::kInvalid) << code_point;
      continue;
    }
    ASSERT_EQ(step.kind, Utf8Kind::kCharacter) << code_point;
    ASSERT_EQ(step.bytes, text.size()) << code_point;
    ASSERT_EQ(step.code_point, code_point);
    for (size_t size = 1; size < text.size(); ++size) {
      const Utf8Step part = NextUtf8(text.substr(0, size));
      ASSERT_EQ(part.kind, Utf8Kind::kIncomplete) << code_point;
      ASSERT_EQ(part.bytes, size);
    }
  }
}

TEST(Utf8Test, OverlongAndForeignFormsAreInvalid) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE",
        "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x98("}) {
    EXPECT_EQ(NextUtf8(text).kind, Utf8Kind::kInvalid) << text;
    EXPECT_EQ(FindInvalidUtf8(std::string("a\u00e9") + text), 3U) << text;
  }
  EXPECT_FALSE(FindInvalidUtf8("").has_value());
  EXPECT_FALSE(FindInvalidUtf8("a\u00e9\u65e5\U0001F600").has_value());
}

// The examples of the Unicode Standard, tables 3-8 to 3-11.
TEST(Utf8Test, ReplacesMaximalSubparts) {
  const std::string r = kReplacementCharacter;
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            r + r + r + r + "A");
}

}  // namespace
}  // namespace paged_kv::llm
