// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_VOCABULARY_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_VOCABULARY_H_

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"

namespace paged_kv::llm {

// The vocabulary in the file's metadata (tokenizer.ggml.*); without tokens if
// the file has none. Takes the token texts out of `file`. Unimplemented: a
// kind of tokenizer that there is none for here, with its name.
absl::StatusOr<Vocabulary> TakeGgufVocabulary(GgufFile* file);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_GGUF_VOCABULARY_H_
