// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace paged_kv::llm {

// A value is the sum of at most so many bf16 numbers.
inline constexpr uint32_t kMaxParts = 3;

// Writes each value as the sum of `parts` bf16 numbers, each the rest of those
// before, rounded: all first ones, then all second ones. What is left is below
// 2^-8, 2^-16 or 2^-24 of the value (or below bf16's smallest number). Infinity
// becomes infinity and NaNs. REQUIRES: parts is 1 to kMaxParts, here and below.
void SplitIntoBf16(absl::Span<const float> values, uint32_t parts,
                   uint16_t* out);  // [parts, values.size()]

// The same into rows of tiles: part p begins at rows[p], 32 values follow one
// another, the next 32 are `stride` behind. Zeros fill up the last ones.
void SplitIntoTiles(absl::Span<const float> values,
                    absl::Span<uint16_t* const> rows, size_t stride);

// y = the sum of what the parts were multiplied to, first to last, and the
// bias.
void JoinParts(const float* products,  // [parts, stride], n of them read
               size_t stride, uint32_t parts,
               const float* bias,  // [n]; null: none
               absl::Span<float> y);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SPLIT_BF16_H_
