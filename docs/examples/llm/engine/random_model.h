// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_RANDOM_MODEL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_RANDOM_MODEL_H_

#include <cstdint>
#include <memory>

#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// A model of any size with random weights, for tests and for measuring what
// does not depend on their values. Matrices are uniform with variance
// 1 / columns, so that activations neither grow nor vanish; norms lie around 1,
// biases (where the configuration has them) around 0. The same seed gives the
// same weights everywhere, rounded to bf16 for that type. It has no vocabulary.
std::unique_ptr<Model> MakeRandomModel(const ModelConfig& config,
                                       WeightType type, uint64_t seed);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_RANDOM_MODEL_H_
