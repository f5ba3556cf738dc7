// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode at the shape of Qwen2.5-7B over cold, shuffled pages. Beside each rate
// stands the sequential read bandwidth of the same threads, its bound.

#include <chrono>
#include <cstdint>
#include <vector>

#include "attention/attention_plan.h"
#include "benchmark/benchmark.h"
#include "benchmarks/attention/benchmark_pages.h"
#include "benchmarks/attention/read_bandwidth.h"

namespace paged_kv::attention::benchmarks {
namespace {

// Args: batch, context, block_tokens, threads.
void BM_PagedDecode(benchmark::State& state, DType dtype, KOrder order) {
  const auto batch = static_cast<uint32_t>(state.range(0));
  const auto context = static_cast<uint32_t>(IsSmoke() ? 100 : state.range(1));
  const auto block = static_cast<uint32_t>(state.range(2));
  BenchmarkPages memory(QwenShape(dtype, block), batch, context, true);
  KvPages pages = memory.pages();
  pages.layout.k_order = order;
  ThreadPool pool(static_cast<size_t>(state.range(3)));
  auto plan = AttentionPlan::ForDecode(pages, kQueryHeads, memory.table(), {});
  if (!plan.ok()) {
    state.SkipWithError(plan.status().ToString().c_str());
    return;
  }
  const std::vector<float> q =
      RandomFloats(size_t{batch} * kQueryHeads * pages.shape.head_dim);
  std::vector<float> out(q.size());
  uint32_t layer = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const absl::Status status =
        plan->Run(pages, layer, q, {absl::MakeSpan(out), {}}, pool);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    layer = (layer + 1) % pages.shape.layers;
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  state.SetItemsProcessed(state.iterations() * batch);
  CountBytes(state, pool, memory.LayerBytes(), elapsed);
}

void DecodeArgs(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "seq", "block", "threads"});
  for (const int threads : {1, 2}) {
    for (const int block : {16, 128}) {
      b->Args({1, 4096, block, threads});
      b->Args({8, 4096, block, threads});
      b->Args({32, 1024, block, threads});
    }
  }
  b->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(BM_PagedDecode, bf16, DType::kBF16, KOrder::kTiled16)
    ->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_PagedDecode, f16, DType::kF16, KOrder::kTiled16)
    ->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_PagedDecode, f32, DType::kF32, KOrder::kTiled16)
    ->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_PagedDecode, fp8, DType::kFp8E4M3, KOrder::kTiled16)
    ->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_PagedDecode, int8, DType::kInt8, KOrder::kTiled16)
    ->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_PagedDecode, bf16_plain_keys, DType::kBF16,
                  KOrder::kTokenDim)
    ->Apply(DecodeArgs);

}  // namespace
}  // namespace paged_kv::attention::benchmarks
