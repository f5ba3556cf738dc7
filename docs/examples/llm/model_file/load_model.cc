// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/model_file/load_model.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "docs/examples/llm/model_file/byte_source.h"
#include "docs/examples/llm/model_file/gguf_file.h"
#include "docs/examples/llm/model_file/gguf_model.h"
#include "docs/examples/llm/model_file/llama2c_model.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {
namespace {

namespace fs = std::filesystem;

// Empty if there is none.
std::string FindLlama2cVocabulary(const std::string& model_path,
                                  uint32_t size) {
  const fs::path folder = fs::path(model_path).parent_path();
  for (const std::string& name :
       {absl::StrCat("tok", size, ".bin"), std::string("tokenizer.bin")}) {
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  }
  return "";
}

absl::Status AddLlama2cVocabulary(const std::string& model_path,
                                  const LoadOptions& options, Model* model) {
  const std::string path =
      options.tokenizer_path.empty()
          ? FindLlama2cVocabulary(model_path, model->config.vocab)
          : options.tokenizer_path;
  if (path.empty()) return absl::OkStatus();
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                            OpenFile(path));
  auto vocabulary = LoadLlama2cVocabulary(*source, model->config.vocab);
  if (!vocabulary.ok()) {
    return absl::Status(
        vocabulary.status().code(),
        absl::StrCat(path, ": ", vocabulary.status().message()));
  }
  model->vocabulary = *std::move(vocabulary);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path,
                                                 const LoadOptions& options) {
  PAGED_KV_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> source,
                            OpenFile(path));
  const bool is_gguf = IsGguf(*source);
  absl::StatusOr<std::unique_ptr<Model>> model =
      is_gguf ? LoadGgufModel(source, options)
              : LoadLlama2cModel(source, options);
  if (!model.ok()) {
    return absl::Status(model.status().code(),
                        absl::StrCat(path, ": ", model.status().message()));
  }
  if ((*model)->name.empty()) (*model)->name = fs::path(path).stem();
  if (!is_gguf) {
    PAGED_KV_RETURN_IF_ERROR(AddLlama2cVocabulary(path, options, model->get()));
  }
  return model;
}

}  // namespace paged_kv::llm
