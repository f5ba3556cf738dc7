// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_MODEL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// A model from a GGUF file; errors as LoadModel.
absl::StatusOr<std::unique_ptr<Model>> LoadGgufModel(
    std::shared_ptr<const ByteSource> source, const LoadOptions& options);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_MODEL_H_
