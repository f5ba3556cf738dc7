// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_DEMO_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_DEMO_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/serving/generate.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// Several questions that share a system prompt, answered together.
struct ModelDemo {
  std::string model;
  bool real = false;  // a fetched model, not random weights
  std::vector<Prompt> prompts;
  uint64_t shared_tokens = 0;  // with which all prompts begin
  GenerateResult result;
};

// On the model that 'make model' fetched, or else on a tiny one with random
// weights, which answers nothing but does the same to the cache.
absl::StatusOr<ModelDemo> RunModelDemo(
    uint32_t threads, uint64_t seed, const std::function<bool()>& interrupted);

std::string ModelDemoText(const ModelDemo& demo);
nlohmann::ordered_json ModelDemoJson(const ModelDemo& demo);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_DEMO_H_
