// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows, step by step, how the KV cache grows.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_CACHE_TRACE_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_CACHE_TRACE_H_

#include <string>

#include "docs/examples/llm/engine/serving_engine.h"

namespace paged_kv::tool {

// What the lines of CacheTraceStep() mean, with the model's sizes.
std::string CacheTraceLegend(const llm::ServingEngine& engine);

// The last step: for each sequence the tokens that it computed, the slots that
// their K and V went to, and its block table. A sequence that ended with the
// step has no table any more.
std::string CacheTraceStep(const llm::ServingEngine& engine);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_CACHE_TRACE_H_
