// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <optional>
#include <utility>

#include "attention/attention_plan.h"
#include "attention/copy_blocks.h"
#include "docs/examples/llm/engine/attention_backend.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

using attention::AttentionPlan;

class CpuAttention final : public AttentionBackend {
 public:
  CpuAttention(const attention::KvPages& pages, uint32_t query_heads,
               attention::ParallelFor* parallel)
      : pages_(pages), query_heads_(query_heads), parallel_(parallel) {}

  absl::Status BeginStep(const StepBatch& step) override {
    PAGED_KV_RETURN_IF_ERROR(
        attention::CopyBlocks(pages_, step.copies, *parallel_));
    PAGED_KV_ASSIGN_OR_RETURN(
        AttentionPlan plan,
        step.IsDecode()
            ? AttentionPlan::ForDecode(pages_, query_heads_, step.table, {})
            : AttentionPlan::ForPrefill(pages_, query_heads_, step.table,
                                        step.qo_indptr, {}));
    plan_.emplace(std::move(plan));
    slots_ = step.slots;
    return absl::OkStatus();
  }

  absl::Status Attend(uint32_t layer, absl::Span<const float> q,
                      const attention::KvRows& k, const attention::KvRows& v,
                      absl::Span<float> out) override {
    PAGED_KV_RETURN_IF_ERROR(
        attention::AppendKv(pages_, layer, k, v, slots_, *parallel_));
    const auto begin = std::chrono::steady_clock::now();
    PAGED_KV_RETURN_IF_ERROR(
        plan_->Run(pages_, layer, q, {out, {}}, *parallel_));
    const auto end = std::chrono::steady_clock::now();
    kernel_s_ += std::chrono::duration<double>(end - begin).count();
    return absl::OkStatus();
  }

  double kernel_s() const override { return kernel_s_; }

 private:
  const attention::KvPages pages_;
  const uint32_t query_heads_;
  attention::ParallelFor* const parallel_;
  std::optional<AttentionPlan> plan_;
  absl::Span<const int64_t> slots_;
  double kernel_s_ = 0;
};

}  // namespace

std::unique_ptr<AttentionBackend> MakeCpuAttention(
    const attention::KvPages& pages, uint32_t query_heads,
    attention::ParallelFor* parallel) {
  return std::make_unique<CpuAttention>(pages, query_heads, parallel);
}

}  // namespace paged_kv::llm
