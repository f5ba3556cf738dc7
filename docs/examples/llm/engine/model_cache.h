// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MODEL_CACHE_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MODEL_CACHE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "attention/kv_pages.h"
#include "docs/examples/llm/model_file/model.h"
#include "paged_kv/kv_cache_manager.h"

namespace paged_kv::llm {

struct ModelCacheOptions {
  DType dtype = DType::kBF16;
  uint32_t block_tokens = 16;
  uint32_t blocks = 0;  // of the pool; at least 1
  uint32_t max_sequences = 64;
  uint32_t max_tokens = 0;  // of a sequence; 0: the model's context
  bool prefix_caching = true;
  // Pages of a device beside the blocks, at most as many as these; 0: none.
  uint32_t device_pages = 0;
};

// What a block of the model's cache holds.
BlockShape CacheShape(const ModelConfig& config, DType dtype,
                      uint32_t block_tokens);

// A cache for all layers of a model, in memory of its own or, if `host_pages`
// is not null, in those of it that are the host's. Errors are those of
// KvCacheManager::Create.
absl::StatusOr<std::unique_ptr<KvCacheManager>> MakeModelCache(
    const ModelConfig& config, const ModelCacheOptions& options,
    const PageLayout* host_pages = nullptr);

// Its pages, as the kernels take them; valid while the cache lives.
absl::StatusOr<attention::KvPages> PagesOf(const KvCacheManager& cache);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_MODEL_CACHE_H_
