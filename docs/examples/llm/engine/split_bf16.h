// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace paged_kv::llm {

// Writes each value as the sum of `parts` bf16 numbers, each the rest of those
// before, rounded: all first ones, then all second ones. What is left is below
// 2^-8, 2^-16 or 2^-24 of the value (or below bf16's smallest number). Infinity
// becomes infinity and NaNs.
void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   uint16_t* out);  // [parts, values.size()]

// The same with each part `stride` behind the one before, also as f32.
void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   size_t stride, uint16_t* out);  // [parts, stride]
void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   size_t stride, float* out);  // [parts, stride]

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_
