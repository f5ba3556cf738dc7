// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/paged_kv/run_cost_case.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "benchmarks/paged_kv/memory_latency.h"
#include "benchmarks/paged_kv/tick_sample.h"
#include "paged_kv/check.h"

namespace paged_kv::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLatencyReads = 200'000;
constexpr int64_t kWarmUpUnits = 10'000;

// What a case needs, kept from one call of the benchmark function to the next,
// for filling a large pool takes far longer than measuring it.
struct Fixture {
  std::string name;
  uint32_t blocks = 0;
  std::unique_ptr<CostCase> cost_case;
  std::unique_ptr<MemoryLatency> latency;
};

Fixture& FixtureFor(const char* name, uint32_t blocks) {
  static Fixture* const fixture = new Fixture;
  if (fixture->name != name || fixture->blocks != blocks) {
    const NamedCostCase* named = FindCostCase(name);
    PAGED_KV_CHECK(named != nullptr);
    fixture->cost_case.reset();  // before the next: both may not fit
    fixture->cost_case = named->make(blocks);
    const size_t bytes = fixture->cost_case->footprint_bytes();
    if (fixture->latency == nullptr || fixture->blocks != blocks) {
      fixture->latency.reset();
      fixture->latency = std::make_unique<MemoryLatency>(bytes);
    }
    fixture->name = name;
    fixture->blocks = blocks;
  }
  return *fixture;
}

void RunBatch(CostCase& cost_case) {
  cost_case.Prepare();
  for (int i = 0; i < cost_case.batch(); ++i) cost_case.Run();
  cost_case.Finish();
}

// Memory that nobody has touched for some seconds may cost a fault of the
// virtual machine's host at the next touch, hundreds of microseconds.
void WarmUp(Fixture& fixture) {
  CostCase& cost_case = *fixture.cost_case;
  for (int64_t units = 0; units < kWarmUpUnits;
       units += int64_t{cost_case.batch()} * cost_case.units()) {
    RunBatch(cost_case);
  }
  fixture.latency->MeasureNs(kWarmUpUnits);
}

double Ns(Clock::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

}  // namespace

void PoolSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1'000);
  if (std::getenv("PAGED_KV_SMOKE") != nullptr) return;
  benchmark->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000);
}

void RunCostCase(benchmark::State& state, const char* name) {
  Fixture& fixture = FixtureFor(name, static_cast<uint32_t>(state.range(0)));
  CostCase& cost_case = *fixture.cost_case;
  const int batch = cost_case.batch();
  TickSample batches;     // timed as a whole, in nanoseconds
  TickSample runs;        // timed one by one, in ticks
  double sampled_ns = 0;  // of the latter's batches
  uint64_t sampled_ticks = 0;
  bool sampling = false;

  WarmUp(fixture);
  const double latency_before = fixture.latency->MeasureNs(kLatencyReads);
  while (state.KeepRunningBatch(batch)) {
    cost_case.Prepare();
    const Clock::time_point start = Clock::now();
    if (sampling) {
      const uint64_t first = Ticks();
      uint64_t last = first;
      for (int i = 0; i < batch; ++i) {
        cost_case.Run();
        const uint64_t now = Ticks();
        runs.Add(now - last);
        last = now;
      }
      sampled_ticks += last - first;
    } else {
      for (int i = 0; i < batch; ++i) cost_case.Run();
    }
    const double ns = Ns(Clock::now() - start);
    cost_case.Finish();
    state.SetIterationTime(ns * 1e-9);
    if (sampling) {
      sampled_ns += ns;
    } else {
      batches.Add(static_cast<uint64_t>(ns));
    }
    sampling = !sampling;
  }
  const double latency_after = fixture.latency->MeasureNs(kLatencyReads);

  const double units = cost_case.units();
  const double dram_ns = (latency_before + latency_after) / 2;
  const double ns = batches.Quantile(500) / (batch * units);
  state.SetItemsProcessed(
      static_cast<int64_t>(static_cast<double>(state.iterations()) * units));
  state.counters["ns"] = ns;
  state.counters["dram_ns"] = dram_ns;
  state.counters["x_dram"] = ns / dram_ns;
  if (runs.empty()) return;
  const double ns_per_tick =
      sampled_ns / static_cast<double>(sampled_ticks) / units;
  state.counters["p50_ns"] = runs.Quantile(500) * ns_per_tick;
  state.counters["p99_ns"] = runs.Quantile(990) * ns_per_tick;
  state.counters["p99.9_ns"] = runs.Quantile(999) * ns_per_tick;
}

}  // namespace paged_kv::benchmarks
