// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_RANDOM_TEXT_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_RANDOM_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "docs/examples/llm/tokenizer/utf8.h"

namespace paged_kv::llm {

// A random character of a random class: ASCII, runs of spaces, the scripts that
// tokenizers treat differently, emoji, and any code point there is.
inline uint32_t RandomCodePoint(std::mt19937_64* random) {
  const auto between = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>((*random)() % (high - low + 1));
  };
  constexpr uint32_t kSpaces[] = {' ',    ' ',    ' ',    '\n',   '\r',
                                  '\t',   0x85,   0xA0,   0x1680, 0x180E,
                                  0x2003, 0x2028, 0x200B, 0x3000, 0xFEFF};
  switch (between(0, 11)) {
    case 0:
    case 1:
      return between('a', 'z');
    case 2:
      return between('A', 'Z');
    case 3:
      return between('0', '9');
    case 4:
      return between(0x21, 0x2F);
    case 5:
    case 6:
      return kSpaces[between(0, 14)];
    case 7:
      return between(0xC0, 0x24F);
    case 8:
      return between(0x4E00, 0x9FFF);
    case 9:
      return between(0x1F300, 0x1FAFF);
    case 10:
      return between(0x300, 0x36F);  // combining
    default:
      break;
  }
  // Any code point but surrogates; U+2581 is SentencePiece's space.
  uint32_t code_point = 0xD800;
  while ((code_point >= 0xD800 && code_point <= 0xDFFF) ||
         code_point == 0x2581) {
    code_point = between(0, 0x10FFFF);
  }
  return code_point;
}

// Up to `max_characters`, with runs of one character now and then.
inline std::string RandomText(size_t max_characters, std::mt19937_64* random) {
  std::string text;
  const size_t characters = (*random)() % (max_characters + 1);
  for (size_t i = 0; i < characters;) {
    const uint32_t code_point = RandomCodePoint(random);
    const size_t run = (*random)() % 8 == 0 ? 1 + (*random)() % 9 : 1;
    for (size_t j = 0; j < run; ++j, ++i) AppendUtf8(code_point, &text);
  }
  return text;
}

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_SUPPORT_RANDOM_TEXT_H_
