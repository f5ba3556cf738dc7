// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_ALPHABET_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_ALPHABET_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace paged_kv::llm {

// GPT-2 spells bytes as printable characters (bytes_to_unicode of OpenAI's
// encoder.py): those that Latin-1 prints as themselves, the others from U+0100
// on, in order. A space is thus U+0120.
//
// The bytes that `spelling` stands for, or nothing if it holds another
// character.
absl::optional<std::string> BytesOfSpelling(absl::string_view spelling);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_BYTE_ALPHABET_H_
