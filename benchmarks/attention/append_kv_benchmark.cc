// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// AppendKv of a decode step (one token for each of many sequences) and of a
// prompt, f32 in, into cold pages.

#include <chrono>
#include <cstdint>
#include <vector>

#include "attention/append_kv.h"
#include "benchmark/benchmark.h"
#include "benchmarks/attention/benchmark_pages.h"
#include "benchmarks/attention/read_bandwidth.h"

namespace paged_kv::attention::benchmarks {
namespace {

void RunAppend(benchmark::State& state, const BenchmarkPages& memory,
               const std::vector<int64_t>& slots, size_t threads) {
  const KvPages& pages = memory.pages();
  ThreadPool pool(threads);
  const std::vector<float> values =
      RandomFloats(slots.size() * pages.shape.kv_heads * pages.shape.head_dim);
  KvRows rows;
  rows.data = values.data();
  uint32_t layer = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const absl::Status status = AppendKv(pages, layer, rows, rows, slots, pool);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    layer = (layer + 1) % pages.shape.layers;
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(slots.size()));
  // f32 read twice, once for K and once for V, and the stored bytes written.
  const uint32_t element = ElementBytes(pages.shape.dtype);
  CountBytes(state, pool, values.size() * 2 * (sizeof(float) + element),
             elapsed);
}

// Args: batch, context, threads.
void BM_AppendKv_Decode(benchmark::State& state, DType dtype) {
  const auto batch = static_cast<uint32_t>(state.range(0));
  const auto context = static_cast<uint32_t>(IsSmoke() ? 64 : state.range(1));
  const BenchmarkPages memory(QwenShape(dtype, 16), batch, context, true);
  const PageTable table = memory.table();
  std::vector<int64_t> slots;
  for (uint32_t i = 0; i < batch; ++i) {
    // Anywhere in each sequence's last page.
    const int64_t page = table.page_indices[table.indptr[i + 1] - 1];
    slots.push_back(page * 16 + i % 16);
  }
  RunAppend(state, memory, slots, static_cast<size_t>(state.range(2)));
}

// Args: tokens, threads.
void BM_AppendKv_Prompt(benchmark::State& state, DType dtype) {
  const auto tokens = static_cast<uint32_t>(IsSmoke() ? 64 : state.range(0));
  const BenchmarkPages memory(QwenShape(dtype, 16), 1, tokens, true);
  const PageTable table = memory.table();
  std::vector<int64_t> slots;
  for (uint32_t t = 0; t < tokens; ++t) {
    slots.push_back(int64_t{table.page_indices[t / 16]} * 16 + t % 16);
  }
  RunAppend(state, memory, slots, static_cast<size_t>(state.range(1)));
}

void DecodeArgs(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "seq", "threads"})
      ->Args({32, 4096, 1})
      ->Args({32, 4096, 2})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}
void PromptArgs(benchmark::internal::Benchmark* b) {
  b->ArgNames({"tokens", "threads"})
      ->Args({512, 1})
      ->Args({512, 2})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(BM_AppendKv_Decode, bf16, DType::kBF16)->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Decode, f32, DType::kF32)->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Decode, fp8, DType::kFp8E4M3)->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Decode, int8, DType::kInt8)->Apply(DecodeArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Prompt, bf16, DType::kBF16)->Apply(PromptArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Prompt, f16, DType::kF16)->Apply(PromptArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Prompt, f32, DType::kF32)->Apply(PromptArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Prompt, fp8, DType::kFp8E4M3)->Apply(PromptArgs);
BENCHMARK_CAPTURE(BM_AppendKv_Prompt, int8, DType::kInt8)->Apply(PromptArgs);

}  // namespace
}  // namespace paged_kv::attention::benchmarks
