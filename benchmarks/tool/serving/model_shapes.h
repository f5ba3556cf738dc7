// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_SHAPES_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_SHAPES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::tool {

// The sizes of a public model, as the config.json that its makers publish says.
// InvalidArgument lists the names.
absl::StatusOr<llm::ModelConfig> ShapeByName(absl::string_view name);

// "a|b|c" for the help.
std::string ShapeNames();

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_SHAPES_H_
