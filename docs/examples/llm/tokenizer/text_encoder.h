// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TEXT_ENCODER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TEXT_ENCODER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// One way to turn plain text, without special tokens, into tokens.
//
// Thread safety: immutable, so any number of threads may use one.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  // Appends the tokens of `text`, which is UTF-8. InvalidArgument: the
  // vocabulary has no token for a part of it.
  virtual absl::Status Encode(absl::string_view text,
                              std::vector<TokenId>* tokens) const = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_TEXT_ENCODER_H_
