// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_DEMO_H_
#define PAGED_KV_BENCHMARKS_TOOL_DEMO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/demo_serving.h"
#include "benchmarks/tool/fragmentation.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/trace.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

struct DemoOptions {
  uint64_t seed = 1;
  uint32_t replay_requests = 1000;
  uint32_t compared_requests = 250;
  std::vector<double> cache_gib = {8, 16, 32, 64, 128, 256};
  DemoServingOptions serving;
};

// How much a cache of some size finds of the prompts.
struct DemoCachePoint {
  double gib = 0;
  double hit_rate = 0;
  double belady_hit_rate = 0;
};

struct DemoResult {
  explicit DemoResult(Trace replayed_trace)
      : trace(std::move(replayed_trace)) {}

  Trace trace;  // of the cache sizes; the comparison takes its beginning
  std::vector<DemoCachePoint> cache;
  std::vector<FragmentationRow> policies;
  FragmentationOptions fragmentation;
  DemoServingResult shared;
  DemoServingResult alone;  // the same batch with nothing shared

  bool SameAnswers() const { return shared.answers == alone.answers; }
};

// The first step of the tour; the others are RunFragmentation() and
// ServeDemoBatch().
absl::StatusOr<std::vector<DemoCachePoint>> DemoCacheSizes(
    const Trace& trace, const DemoOptions& options, Progress& progress);

// What the tour says after each step, and at its end.
std::string DemoCacheText(const DemoResult& result);
std::string DemoPoliciesText(const DemoResult& result);
std::string DemoServingText(const DemoResult& result,
                            const DemoServingOptions& options);
std::string DemoSummaryText(const DemoResult& result);
nlohmann::ordered_json DemoJson(const DemoResult& result, uint64_t seed);
Plot DemoPlot(const DemoResult& result);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_DEMO_H_
