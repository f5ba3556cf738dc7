// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/lengths_kernel.h"

#include <algorithm>
#include <utility>

#include "benchmarks/tool/kernels/attention_case.h"
#include "benchmarks/tool/kernels/timing.h"
#include "benchmarks/tool/progress.h"
#include "paged_kv/block_shape.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// Far more than caches hold, as in the kernel benchmark; no more than this many
// turns' worth of layers, for small models.
constexpr uint64_t kBytes = uint64_t{1} << 30;
constexpr uint64_t kMostTurns = 256;

}  // namespace

KernelTurns::KernelTurns(KvBatch batch, uint32_t turn_layers,
                         attention::ParallelFor* parallel)
    : batch_(std::move(batch)),
      turn_layers_(turn_layers),
      parallel_(parallel) {}

absl::StatusOr<std::unique_ptr<KernelTurns>> KernelTurns::Create(
    const llm::ModelConfig& config, const llm::ModelCacheOptions& cache,
    uint32_t batch, uint32_t context, uint64_t seed,
    attention::ParallelFor* parallel) {
  AttentionCase kernel;
  kernel.shape = llm::CacheShape(config, cache.dtype, cache.block_tokens);
  kernel.query_heads = config.heads;
  kernel.tokens.assign(batch, context);
  kernel.queries.assign(batch, 1);
  kernel.shape.layers = 1;
  const uint64_t layer_bytes = PageBytes(kernel.shape).value() *
                               static_cast<uint64_t>(kernel.NumPages());
  kernel.shape.layers = static_cast<uint32_t>(std::clamp<uint64_t>(
      kBytes / layer_bytes, config.layers, config.layers * kMostTurns));
  PAGED_KV_RETURN_IF_ERROR(CompleteCase(&kernel));
  PAGED_KV_ASSIGN_OR_RETURN(KvBatch pages, KvBatch::Create(kernel, seed));
  std::unique_ptr<KernelTurns> turns(
      new KernelTurns(std::move(pages), config.layers, parallel));
  Progress silent(nullptr);
  PAGED_KV_RETURN_IF_ERROR(turns->batch_.Fill(*parallel, silent));
  // Refers to the batch where it now is.
  PAGED_KV_ASSIGN_OR_RETURN(attention::AttentionPlan plan,
                            turns->batch_.Plan(attention::Isa::kAuto));
  turns->plan_ = std::make_unique<attention::AttentionPlan>(std::move(plan));
  return turns;
}

absl::StatusOr<double> KernelTurns::Turn() {
  absl::Status status;
  const uint32_t layers = batch_.attention_case().shape.layers;
  const Timing timing = TimeOf([&] {
    for (uint32_t i = 0; i < turn_layers_ && status.ok(); ++i) {
      status = batch_.Attend(*plan_, next_layer_, *parallel_);
      next_layer_ = (next_layer_ + 1) % layers;
    }
  });
  PAGED_KV_RETURN_IF_ERROR(status);
  return timing.wall_seconds;
}

double KernelTurns::turn_bytes() const {
  return batch_.attention_case().DistinctKvBytes() * turn_layers_;
}

double KernelComparison::EngineRate() const {
  return engine_bytes / Median(engine_s);
}

double KernelComparison::AloneRate() const {
  return alone_bytes / Median(alone_s);
}

}  // namespace paged_kv::tool
