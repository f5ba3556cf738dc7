// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SAMPLING_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SAMPLING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

struct SamplingOptions {
  float temperature = 0.0F;  // 0: the most likely token, whatever else is set
  uint32_t top_k = 0;        // draw from the k most likely; 0: from all
  // Draw from the fewest most likely tokens whose probabilities reach this
  // (nucleus sampling, Holtzman et al. 2020, arXiv:1904.09751).
  float top_p = 1.0F;
  uint64_t seed = 0;
};

// InvalidArgument, with the number, for a temperature that is negative or not
// finite, or top_p outside (0, 1].
absl::Status Validate(const SamplingOptions& options);

// The most likely token, the first of equals. REQUIRES: logits is not empty.
TokenId MostLikely(absl::Span<const float> logits);

// Draws tokens. Draw `index` of stream `stream` is a function of the seed,
// these two and the logits, so it does not depend on what else is served, or on
// whether a request was interrupted.
//
// Thread safety: thread-compatible (keeps a buffer).
class Sampler {
 public:
  // REQUIRES: logits is not empty, `options` are valid.
  TokenId Draw(absl::Span<const float> logits, const SamplingOptions& options,
               uint64_t stream, uint64_t index);

 private:
  void KeepMostLikely(uint32_t top_k);
  void KeepNucleus(float top_p);

  std::vector<std::pair<float, TokenId>> candidates_;  // weight, token
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_SAMPLING_H_
