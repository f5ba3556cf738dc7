// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_DEMO_MODEL_H_
#define PAGED_KV_BENCHMARKS_TOOL_DEMO_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv::tool {

// The made-up model of the demo: the shapes of Qwen2.5-7B's attention, random
// features in place of everything else. Deterministic in its seed.
//
// Thread safety: const methods may run concurrently.
class DemoModel {
 public:
  static constexpr uint32_t kQueryHeads = 28;
  static constexpr uint32_t kKvHeads = 4;
  static constexpr uint32_t kHeadDim = 128;
  static constexpr uint32_t kVocabulary = 256;

  enum class Projection : uint32_t { kQuery, kKey, kValue };

  explicit DemoModel(uint64_t seed);

  // row [heads, kHeadDim]: Q, K or V of a token at a position in a layer,
  // values from -1 to 1.
  void Project(Projection projection, TokenId token, uint32_t position,
               uint32_t layer, absl::Span<float> row) const;

  // Adds the logits of one layer's attention output.
  // attended [kQueryHeads, kHeadDim], logits [kVocabulary].
  void AddLogits(uint32_t layer, absl::Span<const float> attended,
                 absl::Span<float> logits) const;

 private:
  // Enough random numbers that a row is a stretch of them.
  std::vector<float> features_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_DEMO_MODEL_H_
