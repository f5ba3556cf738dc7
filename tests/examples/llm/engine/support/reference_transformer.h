// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_REFERENCE_TRANSFORMER_H_
#define PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_REFERENCE_TRANSFORMER_H_

#include <vector>

#include "absl/types/span.h"
#include "docs/examples/llm/model_file/model.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// Logits of all positions, [tokens.size(), vocab], by the plainest means: the
// whole text at once, in double precision, one number at a time, no cache. It
// shares no code with the engine.
std::vector<double> ReferenceLogits(const Model& model,
                                    absl::Span<const TokenId> tokens);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_TESTS_EXAMPLES_LLM_ENGINE_SUPPORT_REFERENCE_TRANSFORMER_H_
