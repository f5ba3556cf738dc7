// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/demo.h"

#include "benchmarks/tool/replay_runner.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr uint32_t kReplayBlockTokens = 64;

}  // namespace

absl::StatusOr<std::vector<DemoCachePoint>> DemoCacheSizes(
    const Trace& trace, const DemoOptions& options, Progress& progress) {
  std::vector<DemoCachePoint> points;
  for (const double gib : options.cache_gib) {
    ReplayOptions replay;
    replay.block_tokens = kReplayBlockTokens;
    replay.decode_step_tokens = 1u << 20;
    replay.pool_blocks = static_cast<uint32_t>(
        gib * static_cast<double>(1u << 30) /
        (kReplayBlockTokens * replay.serving.model.kv_bytes_per_token));
    PAGED_KV_ASSIGN_OR_RETURN(const ReplaySummary summary,
                              RunReplay(trace, replay, progress));
    points.push_back({gib, summary.result.HitRate(), *summary.belady_hit_rate});
  }
  return points;
}

}  // namespace paged_kv::tool
