// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/step_runner.h"

#include <chrono>

#include "paged_kv/status_macros.h"

namespace paged_kv::llm {

absl::StatusOr<absl::Span<const float>> StepRunner::Run(
    StepId step, absl::Span<const SequenceRows> sequences) {
  const auto begin = std::chrono::steady_clock::now();
  PAGED_KV_RETURN_IF_ERROR(
      FillStepBatch(*cache_, step, sequences, &batch_, first_device_page_));
  const auto end = std::chrono::steady_clock::now();
  tables_s_ += std::chrono::duration<double>(end - begin).count();
  logits_.resize(batch_.logit_rows.size() * model_->config().vocab);
  PAGED_KV_RETURN_IF_ERROR(
      model_->Forward(batch_, *attention_, absl::MakeSpan(logits_)));
  return absl::MakeConstSpan(logits_);
}

}  // namespace paged_kv::llm
