// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PROMPT_LOOKUP_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PROMPT_LOOKUP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// Guesses up to `max_tokens` tokens behind `tokens` without a model: finds the
// last place before where the last three tokens (else two, else one) stood
// already, and takes what followed there, going on with the guess itself where
// that runs into the end. Good where an answer quotes its prompt or repeats
// itself. Empty if the last token is new. O(tokens). Prompt lookup decoding
// (Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding).
void LookUpDraft(absl::Span<const TokenId> tokens, uint32_t max_tokens,
                 std::vector<TokenId>* draft);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_PROMPT_LOOKUP_H_
