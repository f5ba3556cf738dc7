// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_FRAGMENTATION_H_
#define PAGED_KV_BENCHMARKS_TOOL_FRAGMENTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/concurrent_replay.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/trace.h"
#include "benchmarks/tool/usage_meter.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

struct FragmentationOptions {
  // The memory that every policy gets, in bytes of Qwen2.5-7B's K/V.
  double memory_gib = 16;
  std::vector<uint32_t> block_sizes = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  ServingOptions serving = Saturated();

  // Everything arrives at once: memory alone decides how many run.
  static ServingOptions Saturated();
  uint64_t capacity_slots() const;
};

// One policy (at one block size, where it has one) under the same load.
struct FragmentationRow {
  PolicyKind policy = PolicyKind::kPaged;
  uint32_t block_tokens = 0;  // 0: the policy has no blocks
  double mean_running = 0;    // while requests wait
  uint32_t peak_running = 0;
  SlotShares of_allocated;  // while requests wait
  SlotShares of_capacity;
  double hit_rate = 0;
  uint64_t preemptions = 0;
  uint64_t never_fits = 0;
  double simulated_seconds = 0;
};

// Serves the trace with every policy in the same memory. Rows: the paged
// policies by block size, then the others.
absl::StatusOr<std::vector<FragmentationRow>> RunFragmentation(
    const Trace& trace, const FragmentationOptions& options,
    Progress& progress);

std::string FragmentationText(const Trace& trace,
                              const FragmentationOptions& options,
                              const std::vector<FragmentationRow>& rows);
std::string FragmentationCsv(const std::vector<FragmentationRow>& rows);
nlohmann::ordered_json FragmentationJson(
    const Trace& trace, const FragmentationOptions& options,
    const std::vector<FragmentationRow>& rows, uint64_t seed);
// "400 requests of x, 16 GiB of KV memory (299,593 tokens of Qwen2.5-7B)".
std::string DescribeFragmentation(const Trace& trace,
                                  const FragmentationOptions& options);
// The upper half of a picture of 2 x 2 panels: what the memory holds and how
// many requests run, by policy. The script is left open for two more panels
// and "unset multiplot".
Plot PoliciesPlot(const std::string& title,
                  const std::vector<FragmentationRow>& rows);
// The same above the paged policies over block sizes.
Plot FragmentationPlot(const Trace& trace, const FragmentationOptions& options,
                       const std::vector<FragmentationRow>& rows);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_FRAGMENTATION_H_
