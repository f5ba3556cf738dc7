// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVING_STATS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVING_STATS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "benchmarks/tool/serving/model_flags.h"
#include "docs/examples/llm/engine/serving_engine.h"
#include "docs/examples/llm/engine/stage_times.h"
#include "nlohmann/json.hpp"
#include "paged_kv/batch_scheduler_stats.h"
#include "paged_kv/cache_stats.h"

namespace paged_kv::tool {

// What serving took: time by stage, the cache, memory.
struct ServingStats {
  double wall_s = 0;
  llm::EngineTimes engine;
  llm::StageTimes forward;
  BatchSchedulerStats scheduler;
  CacheStats cache;
  uint64_t beam_forks = 0;  // sequences that beam search forked
  // Used at once, those kept for later prompts among them.
  uint64_t peak_used_blocks = 0;
  uint64_t block_bytes = 0;
  uint64_t pool_blocks = 0;
  uint64_t kv_bytes_per_token = 0;
  uint64_t weight_bytes = 0;
  uint64_t step_weight_bytes = 0;  // of these, read by every step
  uint64_t step_bytes = 0;         // activations and logits of the largest step
  std::string card_text;           // OpenedBackend::Text() and Json()
  nlohmann::ordered_json card;
  uint64_t program_bytes = 0;  // of the process before the model came
  uint64_t peak_process_bytes = 0;

  double OutputTokensPerSecond() const;
  // What memory should be enough: program, weights, the blocks used at once
  // and what the largest step computed.
  uint64_t PartsBytes() const;
  // Scheduler, manager and page tables of all that a step takes.
  double OverheadShare() const;
  // Right ones of the drafts that decodes checked.
  double AcceptedShare() const;
};

// Follows an engine from construction on.
class ServingMeter {
 public:
  explicit ServingMeter(const llm::ServingEngine* engine);

  ServingStats Finish() const;

 private:
  const llm::ServingEngine* const engine_;
  const llm::StageTimes forward_before_;
  const std::chrono::steady_clock::time_point begin_;
};

std::string ServingStatsText(const ServingStats& stats);
nlohmann::ordered_json ServingStatsJson(const ServingStats& stats);

// "1.5 GB", "23.0 kB": powers of 1000.
std::string BytesText(uint64_t bytes);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVING_STATS_H_
