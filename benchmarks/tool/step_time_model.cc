// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/step_time_model.h"

#include <algorithm>

namespace paged_kv::tool {

void StepWork::Add(uint64_t context, uint64_t new_tokens) {
  const double n = static_cast<double>(new_tokens);
  tokens += new_tokens;
  // Query i sees the context and the new tokens up to itself.
  query_key_pairs += n * static_cast<double>(context) + n * (n + 1) / 2;
  kv_tokens += context + new_tokens;
}

absl::Duration StepTime(const StepTimeModel& model, const StepWork& work) {
  const double flops = 2 * model.weights * static_cast<double>(work.tokens) +
                       model.flops_per_query_and_key * work.query_key_pairs;
  const double bytes =
      model.weight_bytes +
      model.kv_bytes_per_token * static_cast<double>(work.kv_tokens);
  return absl::Seconds(
      std::max(flops / model.flops_per_second, bytes / model.bytes_per_second));
}

}  // namespace paged_kv::tool
