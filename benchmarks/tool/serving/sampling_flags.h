// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_SAMPLING_FLAGS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_SAMPLING_FLAGS_H_

#include "CLI/App.hpp"
#include "docs/examples/llm/engine/sampling.h"

namespace paged_kv::tool {

// --temperature, --top_k, --top_p; the seed is CommonFlags::seed.
void AddSamplingFlags(CLI::App& app, llm::SamplingOptions* options);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_SAMPLING_FLAGS_H_
