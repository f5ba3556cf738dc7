// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Flags of the commands that run a language model, and the model itself.

#ifndef PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_FLAGS_H_
#define PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/serving/backend_flags.h"
#include "docs/examples/llm/engine/model_cache.h"
#include "docs/examples/llm/engine/transformer.h"
#include "docs/examples/llm/model_file/model.h"
#include "docs/examples/llm/tokenizer/tokenizer.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {

// A model that is ready to run. Its threads outlive it, so they come first.
struct LoadedModel {
  std::unique_ptr<attention::ThreadPool> threads;
  std::unique_ptr<llm::Tokenizer> tokenizer;  // null: it has no vocabulary
  std::unique_ptr<llm::Transformer> model;
  std::string name;
  std::string path;            // empty: made, not read
  double load_s = 0;           // reading and packing the weights
  OpenedBackend backend;       // where engines of this model attend
  uint64_t program_bytes = 0;  // that the process held before

  const llm::ModelConfig& config() const { return model->config(); }
};

// Packs the weights of `model` and makes its tokenizer, if it has a vocabulary.
absl::StatusOr<LoadedModel> PrepareModel(std::unique_ptr<llm::Model> model,
                                         uint32_t threads);

// The model file that `scripts/fetch_model.sh` fetched, or "" if there is none:
// the first .gguf in ${XDG_CACHE_HOME:-~/.cache}/pagedkv.
std::string FetchedModelPath();

// --model, --tokenizer, --weights, --threads, and where to attend.
struct ModelFlags {
  std::string path;
  std::string tokenizer_path;
  absl::optional<llm::WeightType> weights;
  uint32_t threads = 0;
  BackendFlags backend;

  void AddTo(CLI::App& app);
  // NotFound, saying how to get one, if none was named and none was fetched.
  // Opens the backend, too.
  absl::StatusOr<LoadedModel> Load() const;
};

// --kv_dtype, --block_tokens, --pool_blocks.
struct KvFlags {
  llm::ModelCacheOptions options;

  void AddTo(CLI::App& app);
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_SERVING_MODEL_FLAGS_H_
