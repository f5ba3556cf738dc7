// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/engine/vector_ops.h"

namespace paged_kv::llm {
namespace {

// The mixing function of SplitMix64 (Steele, Lea, Flood 2014), a bijection
// whose outputs pass for random.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Uniform over [0, 1).
double Uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t bits = Mix(Mix(Mix(seed) ^ stream) ^ index);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// More likely first; of equals, the one that comes first.
bool Before(const std::pair<float, TokenId>& a,
            const std::pair<float, TokenId>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

}  // namespace

absl::Status Validate(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature ", options.temperature,
                     " is not a finite number from 0 on"));
  }
  if (!(options.top_p > 0) || !(options.top_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_p ", options.top_p, " is not above 0 and up to 1"));
  }
  return absl::OkStatus();
}

TokenId MostLikely(absl::Span<const float> logits) {
  return static_cast<TokenId>(IndexOfLargest(logits));
}

void Sampler::KeepMostLikely(uint32_t top_k) {
  if (top_k == 0 || top_k >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + top_k,
                   candidates_.end(), Before);
  candidates_.resize(top_k);
}

void Sampler::KeepNucleus(float top_p) {
  if (top_p >= 1) return;
  double sum = 0;
  for (const auto& [weight, token] : candidates_) sum += double{weight};
  // All tokens below this share reach no more than 1 - top_p together, so none
  // of them is needed, and few are left to sort.
  const double negligible =
      sum * (1.0 - double{top_p}) / static_cast<double>(candidates_.size());
  std::erase_if(candidates_, [&](const auto& candidate) {
    return double{candidate.first} < negligible;
  });
  std::sort(candidates_.begin(), candidates_.end(), Before);
  double reached = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && reached < sum * double{top_p}) {
    reached += double{candidates_[kept++].first};
  }
  candidates_.resize(std::max<size_t>(kept, 1));
}

TokenId Sampler::Draw(absl::Span<const float> logits,
                      const SamplingOptions& options, uint64_t stream,
                      uint64_t index) {
  const TokenId best = MostLikely(logits);
  if (options.temperature == 0) return best;
  const float highest = logits[static_cast<size_t>(best)];
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float weight = std::exp((logits[i] - highest) / options.temperature);
    // A broken model's NaN would break the order that sorting needs.
    candidates_.emplace_back(weight > 0 ? weight : 0.0F,
                             static_cast<TokenId>(i));
  }
  KeepMostLikely(options.top_k);
  KeepNucleus(options.top_p);
  double sum = 0;
  for (const auto& [weight, token] : candidates_) sum += double{weight};
  double rest = Uniform(options.seed, stream, index) * sum;
  for (const auto& [weight, token] : candidates_) {
    rest -= double{weight};
    if (rest < 0) return token;
  }
  return best;  // rounding, or logits that are not numbers
}

}  // namespace paged_kv::llm
