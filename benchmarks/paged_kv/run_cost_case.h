// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_RUN_COST_CASE_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_RUN_COST_CASE_H_

#include <benchmark/benchmark.h>

#include "benchmarks/paged_kv/cost_case.h"

namespace paged_kv::benchmarks {

// Runs the case of that name with a pool of state.range(0) blocks. The column
// Time is the mean per run, other processes included. Counters, in nanoseconds
// and per unit of the case (block, token, ...):
//   ns        median of batches that were timed as a whole
//   p50_ns, p99_ns, p99.9_ns  of runs that were timed one by one
//   dram_ns   one dependent read over the same footprint, before and after
//   x_dram    ns / dram_ns
void RunCostCase(benchmark::State& state, const char* name);

// 10^3 to 10^7 blocks; 10^3 only under PAGED_KV_SMOKE.
void PoolSizes(benchmark::internal::Benchmark* benchmark);

#define PAGED_KV_COST_BENCHMARK(function, name)       \
  void function(benchmark::State& state) {            \
    ::paged_kv::benchmarks::RunCostCase(state, name); \
  }                                                   \
  BENCHMARK(function)                                 \
      ->ArgName("blocks")                             \
      ->Apply(::paged_kv::benchmarks::PoolSizes)      \
      ->UseManualTime()                               \
      ->Unit(benchmark::kNanosecond)

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_RUN_COST_CASE_H_
