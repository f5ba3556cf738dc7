// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_CONFIG_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_CONFIG_H_

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

// The configuration in the file's metadata, valid by ValidateConfig.
// InvalidArgument: a value is missing, or cannot be. Unimplemented: an
// architecture, or a variant of one (experts, scaled RoPE, sliding window),
// that the engine does not compute.
absl::StatusOr<ModelConfig> ReadGgufConfig(const GgufFile& file);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_CONFIG_H_
