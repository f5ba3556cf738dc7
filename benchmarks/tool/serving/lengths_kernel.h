// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode attention inside the engine against the kernel by itself.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_KERNEL_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_KERNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/attention_plan.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/kernels/kv_batch.h"
#include "docs/examples/llm/engine/model_cache.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::tool {

// What the kernel benchmark (`pagedkv decode`) measures, in turns as long as
// the attention of one step of the engine: a batch of the same shape over 1 GiB
// of layers (of small models: 256 times as many as they have), so that each is
// read from memory, with a shuffled table.
//
// Thread safety: none.
class KernelTurns {
 public:
  // Sequences of `context` tokens. `parallel` is borrowed. Errors of
  // CompleteCase() and AttentionPlan.
  static absl::StatusOr<std::unique_ptr<KernelTurns>> Create(
      const llm::ModelConfig& config, const llm::ModelCacheOptions& cache,
      uint32_t batch, uint32_t context, uint64_t seed,
      attention::ParallelFor* parallel);

  // Seconds of the model's number of layers, the next ones of all.
  absl::StatusOr<double> Turn();

  // Distinct K and V that a turn reads.
  double turn_bytes() const;

 private:
  KernelTurns(KvBatch batch, uint32_t turn_layers,
              attention::ParallelFor* parallel);

  KvBatch batch_;
  const uint32_t turn_layers_;
  attention::ParallelFor* const parallel_;
  std::unique_ptr<attention::AttentionPlan> plan_;
  uint32_t next_layer_ = 0;
};

// The decode steps of a row, each followed by a turn of the kernel alone.
struct KernelComparison {
  std::vector<double> engine_s;  // of the kernel, by step
  std::vector<double> alone_s;   // by turn
  double engine_bytes = 0;       // K and V that a step reads, on average
  double alone_bytes = 0;

  bool empty() const { return engine_s.empty() || alone_s.empty(); }
  // Bytes per second, by the median.
  double EngineRate() const;
  double AloneRate() const;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_LENGTHS_KERNEL_H_
