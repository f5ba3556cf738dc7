// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/serving/model_flags.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/kernels/attention_flags.h"
#include "benchmarks/tool/serving/process_memory.h"
#include "docs/examples/llm/model_file/load_model.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

absl::StatusOr<absl::optional<llm::WeightType>> ParseWeights(
    absl::string_view name) {
  if (name == "auto") return absl::optional<llm::WeightType>();
  for (const auto type : {llm::WeightType::kF32, llm::WeightType::kBf16}) {
    if (name == llm::WeightTypeName(type)) {
      return absl::optional<llm::WeightType>(type);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--weights='", name, "'; use auto, f32 or bf16"));
}

std::filesystem::path CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "pagedkv";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "pagedkv";
}

}  // namespace

std::string FetchedModelPath() {
  std::error_code error;
  std::filesystem::directory_iterator files(CacheFolder(), error);
  std::string first;
  if (error) return first;
  for (const auto& file : files) {
    const std::string path = file.path().string();
    if (file.path().extension() != ".gguf") continue;
    if (first.empty() || path < first) first = path;
  }
  return first;
}

absl::StatusOr<LoadedModel> PrepareModel(std::unique_ptr<llm::Model> model,
                                         uint32_t threads) {
  LoadedModel loaded;
  loaded.name = model->name;
  if (!model->vocabulary.tokens.empty()) {
    PAGED_KV_ASSIGN_OR_RETURN(
        loaded.tokenizer,
        llm::Tokenizer::Create(std::exchange(model->vocabulary, {})));
  }
  loaded.threads = std::make_unique<attention::ThreadPool>(threads);
  PAGED_KV_ASSIGN_OR_RETURN(
      loaded.model,
      llm::Transformer::Create(std::move(model), {}, loaded.threads.get()));
  return loaded;
}

void ModelFlags::AddTo(CLI::App& app) {
  const std::string group = "Model";
  AddText(app, "--model", &path, "FILE",
          "GGUF or llama2.c file (Llama, Qwen2); by default the one that "
          "'make model' fetched")
      ->group(group);
  AddText(app, "--tokenizer", &tokenizer_path, "FILE",
          "Vocabulary of a llama2.c model; by default tok<size>.bin or "
          "tokenizer.bin beside it")
      ->group(group);
  AddChoice(app, "--weights", &weights, ParseWeights, "auto|f32|bf16", "auto",
            "Type that matrices are held in; auto: f32 where the file holds "
            "f32, else bf16")
      ->group(group);
  AddNumber(app, "--threads", &threads, 0, 1024,
            "Threads that compute; 0: one per hardware thread")
      ->group(group);
  backend.AddTo(app);
}

absl::StatusOr<LoadedModel> ModelFlags::Load() const {
  const std::string file = path.empty() ? FetchedModelPath() : path;
  if (file.empty()) {
    return absl::NotFoundError(
        "no model: name one with --model=FILE, or run 'make model', which "
        "fetches a small one");
  }
  PAGED_KV_ASSIGN_OR_RETURN(OpenedBackend opened, backend.Open());
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t program_bytes = ProcessBytes();
  llm::LoadOptions options;
  options.weight_type = weights;
  options.tokenizer_path = tokenizer_path;
  options.on_demand = true;
  PAGED_KV_ASSIGN_OR_RETURN(std::unique_ptr<llm::Model> model,
                            llm::LoadModel(file, options));
  PAGED_KV_ASSIGN_OR_RETURN(LoadedModel loaded,
                            PrepareModel(std::move(model), threads));
  loaded.path = file;
  loaded.backend = std::move(opened);
  loaded.program_bytes = program_bytes;
  loaded.load_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return loaded;
}

void KvFlags::AddTo(CLI::App& app) {
  const std::string group = "KV cache";
  AddChoice(app, "--kv_dtype", &options.dtype, ParseDType,
            "f32|f16|bf16|fp8_e4m3|int8", DTypeName(options.dtype),
            "Type of stored K and V")
      ->group(group);
  AddNumber(app, "--block_tokens", &options.block_tokens, 1, kMaxBlockTokens,
            "Tokens per block")
      ->group(group);
  AddNumber(app, "--pool_blocks", &options.blocks, 0, 1u << 24,
            "Blocks of the pool; 0: enough for all that runs at once")
      ->group(group);
}

}  // namespace paged_kv::tool
