// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as the Unicode Standard defines it (table 3-7): no overlong forms, no
// surrogates, nothing beyond U+10FFFF.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_UTF8_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace paged_kv::llm {

inline constexpr char kReplacementCharacter[] = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Kind : uint8_t {
  kCharacter,
  kInvalid,     // no continuation makes it a character
  kIncomplete,  // the text ends within a character
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::kCharacter;
  // Of the character; else the bytes that count as one error, at least 1: the
  // longest beginning of a character ("maximal subpart", section 3.9).
  size_t bytes = 0;
  uint32_t code_point = 0;  // of kCharacter
};

// What `text` begins with.
// REQUIRES: text is not empty.
Utf8Step NextUtf8(absl::string_view text);

// Where the first byte lies that is not part of a character.
absl::optional<size_t> FindInvalidUtf8(absl::string_view text);

// With U+FFFD for each error.
std::string ReplaceInvalidUtf8(absl::string_view text);

// REQUIRES: a code point that UTF-8 can hold.
void AppendUtf8(uint32_t code_point, std::string* text);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_UTF8_H_
