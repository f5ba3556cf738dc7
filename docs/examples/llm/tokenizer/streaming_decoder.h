// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_STREAMING_DECODER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_STREAMING_DECODER_H_

#include <string>

#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// Decodes token by token for display: gives whole characters only. All that it
// gave, with what Finish gives, equals Tokenizer::Decode of all tokens.
//
// Thread safety: thread-compatible.
class StreamingDecoder {
 public:
  // `tokenizer` must outlive this. `at_start`: the tokens begin a text, as
  // opposed to following a prompt.
  explicit StreamingDecoder(const Tokenizer* tokenizer, bool at_start = false);

  // The characters that `token` completes; bytes of an unfinished one wait.
  std::string Next(TokenId token);
  // U+FFFD for an unfinished character, or nothing. Starts anew.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  bool at_start_;
  bool drops_space_;
  std::string pending_;  // the beginning of a character, at most 3 bytes
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_TOKENIZER_STREAMING_DECODER_H_
