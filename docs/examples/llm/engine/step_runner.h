// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_RUNNER_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_RUNNER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "docs/examples/llm/engine/aligned_floats.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "docs/examples/llm/engine/step_batch.h"
#include "docs/examples/llm/engine/transformer.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::llm {

// Runs committed steps of a cache through a model; whoever committed a step
// retires it. All is borrowed. Thread safety: thread-compatible.
class StepRunner {
 public:
  StepRunner(const KvCacheManager* cache, Transformer* model,
             AttentionBackend* attention, uint32_t first_device_page = 0)
      : cache_(cache),
        model_(model),
        attention_(attention),
        first_device_page_(first_device_page) {}

  // Logits [wanted rows, vocab] of all sequences in their order; valid until
  // the next call. Errors are those of FillStepBatch and Forward.
  absl::StatusOr<absl::Span<const float>> Run(
      StepId step, absl::Span<const SequenceRows> sequences);

  // Of the last step.
  const StepBatch& batch() const { return batch_; }
  // Memory of activations and logits, of the largest step so far.
  size_t step_bytes() const {
    return model_->activation_bytes() + logits_.capacity() * sizeof(float);
  }
  // Spent on slots and page tables, in all calls.
  double tables_s() const { return tables_s_; }

 private:
  const KvCacheManager* const cache_;
  Transformer* const model_;
  AttentionBackend* const attention_;
  const uint32_t first_device_page_;  // FillStepBatch()
  StepBatch batch_;
  AlignedFloats logits_;
  double tables_s_ = 0;
};

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_RUNNER_H_
