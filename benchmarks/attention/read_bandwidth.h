// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_ATTENTION_READ_BANDWIDTH_H_
#define PAGED_KV_BENCHMARKS_ATTENTION_READ_BANDWIDTH_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "attention/parallel_for.h"
#include "benchmark/benchmark.h"
#include "benchmarks/attention/benchmark_pages.h"

namespace paged_kv::attention::benchmarks {

// Adds up everything, in several independent sums.
inline uint64_t ReadAll(const uint8_t* data, size_t bytes) {
  constexpr size_t kStep = 64;
  uint64_t sums[8] = {};
  for (size_t i = 0; i + kStep <= bytes; i += kStep) {
    uint64_t words[8];
    std::memcpy(words, data + i, kStep);
    for (size_t w = 0; w < 8; ++w) sums[w] += words[w];
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

// Bytes per second that `pool`'s threads together read sequentially from
// memory: the best of some rounds over 512 MiB. The bound of a decode.
inline double MeasureReadBandwidth(ParallelFor& pool) {
  const size_t bytes = IsSmoke() ? size_t{1} << 20 : size_t{512} << 20;
  constexpr size_t kPieces = 64;
  static const HugeBuffer& buffer = *new HugeBuffer(size_t{512} << 20);
  std::memset(buffer.data(), 1, bytes);
  double best = 0.0;
  for (int round = 0; round < (IsSmoke() ? 1 : 7); ++round) {
    const auto start = std::chrono::steady_clock::now();
    pool.Run(kPieces, [&](size_t piece, size_t) {
      benchmark::DoNotOptimize(
          ReadAll(buffer.data() + piece * (bytes / kPieces), bytes / kPieces));
    });
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / elapsed.count());
  }
  return best;
}

// The same, measured once per number of threads.
inline double ReadBandwidth(ParallelFor& pool) {
  static std::map<size_t, double>& known = *new std::map<size_t, double>();
  const auto [entry, is_new] = known.try_emplace(pool.num_workers());
  if (is_new) entry->second = MeasureReadBandwidth(pool);
  return entry->second;
}

// Counters of a benchmark whose iterations moved `bytes` each and took
// `elapsed` together: its rate, the machine's read rate, and their ratio.
inline void CountBytes(benchmark::State& state, ParallelFor& pool, size_t bytes,
                       std::chrono::duration<double> elapsed) {
  const double rate = static_cast<double>(state.iterations()) *
                      static_cast<double>(bytes) / elapsed.count();
  const double stream = ReadBandwidth(pool);
  state.counters["GB_per_s"] = rate * 1e-9;
  state.counters["stream_GB_per_s"] = stream * 1e-9;
  state.counters["share_of_stream"] = rate / stream;
}

}  // namespace paged_kv::attention::benchmarks

#endif  // PAGED_KV_BENCHMARKS_ATTENTION_READ_BANDWIDTH_H_
