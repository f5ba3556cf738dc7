// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What several runs of one workload say about each other.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_COMPARISON_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_COMPARISON_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "benchmarks/tool/serving/serve_request.h"
#include "benchmarks/tool/serving/serve_run.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// Nothing where the runs to compare are not there, or one was interrupted.
struct ServeComparison {
  // Output tokens per second, of the same sharing.
  absl::optional<double> dynamic_over_static;
  absl::optional<double> dynamic_over_none;
  // Mean time to first token of all requests but the first: without sharing,
  // over that with it, of the same batching.
  absl::optional<double> first_token_gain;
};

ServeComparison CompareRuns(absl::Span<const ServeResult> results);

// The fewest prompt tokens that must be computed if nothing that two prompts
// begin with is computed twice: every distinct beginning once, and at least
// one token of each prompt.
uint64_t IdealPrefillTokens(absl::Span<const ServeRequest> requests);

// Prompt tokens that a run computed: those not found in the cache, and those
// computed again. Requests without an output do not count.
uint64_t PrefillTokens(absl::Span<const ServeRequest> requests,
                       const ServeResult& result);

// Lines for the report; empty if there is nothing to compare.
std::string ComparisonText(const ServeComparison& comparison);
nlohmann::ordered_json ComparisonJson(const ServeComparison& comparison);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SERVE_COMPARISON_H_
