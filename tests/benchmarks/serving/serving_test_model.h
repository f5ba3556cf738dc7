// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_TESTS_BENCHMARKS_SERVING_SERVING_TEST_MODEL_H_
#define PAGED_KV_TESTS_BENCHMARKS_SERVING_SERVING_TEST_MODEL_H_

#include <utility>

#include "benchmarks/tool/serving/model_flags.h"
#include "docs/examples/llm/engine/random_model.h"
#include "gtest/gtest.h"

namespace paged_kv::tool {

// A tiny model with random weights and no vocabulary.
inline LoadedModel TinyModel() {
  llm::ModelConfig config;
  config.vocab = 97;
  config.hidden = 32;
  config.intermediate = 48;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.max_context = 128;
  auto model = PrepareModel(
      llm::MakeRandomModel(config, llm::WeightType::kF32, 1), /*threads=*/1);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace paged_kv::tool

#endif  // PAGED_KV_TESTS_BENCHMARKS_SERVING_SERVING_TEST_MODEL_H_
