// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_REPLAY_RUNNER_H_
#define PAGED_KV_BENCHMARKS_TOOL_REPLAY_RUNNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/concurrent_replay.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/replay_result.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

enum class Concurrency {
  kSerial,  // each request finishes before the next one starts
  kTrace,   // arrival times, many at once
};

absl::string_view ConcurrencyName(Concurrency concurrency);
absl::StatusOr<Concurrency> ParseConcurrency(absl::string_view name);

struct ReplayOptions {
  PolicyKind policy = PolicyKind::kPaged;
  Eviction eviction = Eviction::kLru;
  Concurrency concurrency = Concurrency::kSerial;
  uint32_t block_tokens = 16;
  uint32_t pool_blocks = 0;  // 0: unbounded (see unbounded_pool.h)
  // If > 0, the pool is this share of the peak demand, measured first.
  double pool_fraction = 0;
  uint32_t decode_step_tokens = 1;  // serial only
  ServingOptions serving;           // trace only
  // Replay again with the step-time model's constants halved and doubled.
  bool sensitivity = true;  // trace only
};

// The result again under another step-time model.
struct SensitivityRow {
  std::string change;  // such as "flops_per_second x 0.5"
  double effective_utilisation = 0;
  double hit_rate = 0;
  uint64_t preemptions = 0;
  double mean_running = 0;
  double simulated_seconds = 0;
  double first_token_seconds_p50 = 0;
};

struct ReplaySummary {
  ReplaySummary(const ReplayOptions& replay_options, ReplayResult replay_result)
      : options(replay_options), result(std::move(replay_result)) {}

  ReplayOptions options;
  ReplayResult result;
  uint64_t pool_blocks = 0;  // the real size, for unbounded pools too
  bool unbounded = false;
  // Largest number of blocks held at once with an unbounded pool.
  uint64_t peak_demand_blocks = 0;
  // Ceiling of hit_rate; nullopt where sharing is off.
  std::optional<double> belady_hit_rate;
  std::vector<SensitivityRow> sensitivity;
};

// Replays `trace` as `options` say. Every request of the trace is completed
// or never fits. Internal if any accounting is broken.
absl::StatusOr<ReplaySummary> RunReplay(const Trace& trace,
                                        const ReplayOptions& options,
                                        Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_REPLAY_RUNNER_H_
