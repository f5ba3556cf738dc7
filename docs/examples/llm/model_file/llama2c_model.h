// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of llama2.c (Karpathy, github.com/karpathy/llama2.c): the format
// of its run.c, which its export.py calls version 0 or legacy.

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LLAMA2C_MODEL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LLAMA2C_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "docs/examples/llm/model_file/model.h"
#include "docs/examples/llm/tokenizer/vocabulary.h"

namespace paged_kv::llm {

// The model without vocabulary. The format has no mark: the sizes in the header
// have to add up to the size of the file. Unimplemented: a later version of the
// format. Other errors as LoadModel.
absl::StatusOr<std::unique_ptr<Model>> LoadLlama2cModel(
    std::shared_ptr<const ByteSource> source, const LoadOptions& options);

// The vocabulary file (tokenizer.bin of llama2.c), for a model of `size`
// tokens: SentencePiece's, with <unk>, <s>, </s> and the bytes as the first
// 259.
absl::StatusOr<Vocabulary> LoadLlama2cVocabulary(const ByteSource& source,
                                                 uint32_t size);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LLAMA2C_MODEL_H_
