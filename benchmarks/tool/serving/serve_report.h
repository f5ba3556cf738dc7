// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REPORT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "benchmarks/tool/serving/serve_run.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// Times in seconds; 0 if there are no values.
struct Distribution {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

Distribution DistributionOf(std::vector<double> values);

// Over the requests that were answered.
struct ServeSummary {
  uint64_t answered = 0;
  Distribution first_token;
  Distribution per_token;  // of requests with two output tokens and more
  double output_tokens_per_s = 0;
  uint64_t cached_tokens = 0;
};

ServeSummary Summarise(const ServeResult& result);

// A row per way of batching, then the statistics of the last one.
std::string ServeText(absl::Span<const ServeResult> results,
                      const ServeRequests& requests);
// A row per request: times and, where the model has a vocabulary, text.
std::string ServeRequestsText(const LoadedModel& model,
                              const ServeRequests& requests,
                              const ServeResult& result);
nlohmann::ordered_json ServeJson(const LoadedModel& model,
                                 const ServeRequests& requests,
                                 absl::Span<const ServeResult> results,
                                 uint64_t seed);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_REPORT_H_
