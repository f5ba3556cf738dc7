// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How the commands that serve a model set up its engine.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_BATCH_OPTIONS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_BATCH_OPTIONS_H_

#include <cstdint>
#include <string>

#include "CLI/App.hpp"
#include "docs/examples/llm/engine/serving_engine.h"

namespace paged_kv::tool {

// How a sequence that must give way gets its K/V back.
enum class Preemption : uint8_t {
  kRecompute,  // from its tokens
  kSwap,       // from memory behind the pool
  kAuto,       // by what is expected to be faster
};

struct BatchOptions {
  llm::ModelCacheOptions cache;  // blocks 0: what runs at once needs
  uint32_t batch = 16;           // sequences at once
  uint32_t step_tokens = 512;    // computed per step
  uint32_t draft_tokens = 0;     // checked per decode; 0: no speculation
  Preemption preemption = Preemption::kRecompute;
};

// What is to be served.
struct BatchLoad {
  uint32_t longest = 1;    // tokens of a sequence
  uint64_t sequences = 1;  // of all requests
  uint32_t requests = 1;
};

// The engine's options for a load: a pool that holds all that runs at once,
// where none was asked for. With preemption by swap the pool is what decodes
// run in, and behind it is memory for all that runs at once.
llm::EngineOptions EngineOptionsFor(const BatchOptions& options,
                                    const BatchLoad& load);

// --batch, --step_tokens, --speculate and --preempt.
void AddBatchFlags(CLI::App& app, const std::string& group,
                   BatchOptions* options);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_BATCH_OPTIONS_H_
