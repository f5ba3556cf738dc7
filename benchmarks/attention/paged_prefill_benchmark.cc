// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Prefill of a chunk over a cached prefix, at the shape of Qwen2.5-7B. The rate
// counts the multiply-adds of unmasked products only, two operations each.

#include <cstdint>
#include <vector>

#include "attention/attention_plan.h"
#include "benchmark/benchmark.h"
#include "benchmarks/attention/benchmark_pages.h"

namespace paged_kv::attention::benchmarks {
namespace {

// Args: new tokens, tokens cached before them, block_tokens, threads.
void BM_PagedPrefill(benchmark::State& state, DType dtype) {
  const int64_t queries = IsSmoke() ? 20 : state.range(0);
  const int64_t cached = IsSmoke() ? 50 : state.range(1);
  BenchmarkPages memory(QwenShape(dtype, static_cast<uint32_t>(state.range(2))),
                        1, static_cast<uint32_t>(queries + cached), false);
  const KvPages& pages = memory.pages();
  ThreadPool pool(static_cast<size_t>(state.range(3)));
  const std::vector<int32_t> qo_indptr = {0, static_cast<int32_t>(queries)};
  auto plan = AttentionPlan::ForPrefill(pages, kQueryHeads, memory.table(),
                                        qo_indptr, {});
  if (!plan.ok()) {
    state.SkipWithError(plan.status().ToString().c_str());
    return;
  }
  const std::vector<float> q = RandomFloats(static_cast<size_t>(queries) *
                                            kQueryHeads * pages.shape.head_dim);
  std::vector<float> out(q.size());
  for (auto _ : state) {
    const absl::Status status =
        plan->Run(pages, 0, q, {absl::MakeSpan(out), {}}, pool);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  // Query i sees cached + i + 1 keys.
  const int64_t pairs = queries * cached + queries * (queries + 1) / 2;
  const double flops =
      4.0 * static_cast<double>(pairs) * kQueryHeads * pages.shape.head_dim;
  state.SetItemsProcessed(state.iterations() * queries);
  state.counters["flop_per_s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * flops,
                         benchmark::Counter::kIsRate);
}

void PrefillArgs(benchmark::internal::Benchmark* b) {
  b->ArgNames({"new", "cached", "block", "threads"});
  for (const int threads : {1, 2}) {
    b->Args({512, 4096, 16, threads});
    b->Args({512, 0, 16, threads});
  }
  b->Args({512, 4096, 128, 1});
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(BM_PagedPrefill, bf16, DType::kBF16)->Apply(PrefillArgs);
BENCHMARK_CAPTURE(BM_PagedPrefill, f16, DType::kF16)->Apply(PrefillArgs);
BENCHMARK_CAPTURE(BM_PagedPrefill, f32, DType::kF32)->Apply(PrefillArgs);

}  // namespace
}  // namespace paged_kv::attention::benchmarks
