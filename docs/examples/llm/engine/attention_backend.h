// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ATTENTION_BACKEND_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ATTENTION_BACKEND_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "docs/examples/llm/engine/step_batch.h"

namespace paged_kv::llm {

// Where K and V are kept and attended to. The forward pass knows no more of the
// cache than this. Thread safety: thread-compatible.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  // Copies the step's blocks and plans what all layers have in common. `step`
  // must outlive the calls of Attend() that follow.
  virtual absl::Status BeginStep(const StepBatch& step) = 0;

  // Stores the K and V of the step's rows in layer `layer`, then attends with
  // q [rows, query_heads, head_dim] to all that the sequences have stored, up
  // to each row's own position. out [rows, query_heads, head_dim].
  virtual absl::Status Attend(uint32_t layer, absl::Span<const float> q,
                              const attention::KvRows& k,
                              const attention::KvRows& v,
                              absl::Span<float> out) = 0;

  // A page's contents were replaced by a transfer between tiers: what was kept
  // of it elsewhere is old.
  virtual void PageReplaced(uint32_t page) { (void)page; }

  // Seconds of all calls that the processor's attention kernel ran: without
  // copies, planning and storing K and V.
  virtual double kernel_s() const { return 0; }
};

// By the CPU kernels, in host memory. `parallel` is borrowed.
std::unique_ptr<AttentionBackend> MakeCpuAttention(
    const attention::KvPages& pages, uint32_t query_heads,
    attention::ParallelFor* parallel);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_ATTENTION_BACKEND_H_
