// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LOAD_MODEL_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LOAD_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "docs/examples/llm/model_file/model.h"

namespace paged_kv::llm {

struct LoadOptions {
  // What matrices are held in. None: f32 where the file holds all of them in
  // f32, else bf16. Norms and biases are f32 always.
  absl::optional<WeightType> weight_type;
  // A llama2.c model's vocabulary is a file of its own. Empty: tok<vocab>.bin
  // or tokenizer.bin beside the model, where one of them is there.
  std::string tokenizer_path;
  // Leaves matrices in the file, which stays open: each is read when somebody
  // asks for it. Whoever packs them one by one never holds them all.
  bool on_demand = false;
};

// Reads a model file: GGUF, which its first bytes announce, or else a llama2.c
// checkpoint (version 0). NotFound: no such file. InvalidArgument: neither
// format, or broken; the message says at which byte or tensor. Unimplemented:
// an architecture or tensor type that this reader does not know, with its name.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(
    const std::string& path, const LoadOptions& options = {});

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_MODEL_FILE_LOAD_MODEL_H_
