// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "docs/examples/llm/engine/model_cache.h"

#include <utility>

#include "docs/examples/llm/engine/step_batch.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::llm {

BlockShape CacheShape(const ModelConfig& config, DType dtype,
                      uint32_t block_tokens) {
  BlockShape shape;
  shape.layers = config.layers;
  shape.kv_heads = config.kv_heads;
  shape.head_dim = config.head_dim;
  shape.block_tokens = block_tokens;
  shape.dtype = dtype;
  return shape;
}

absl::StatusOr<std::unique_ptr<KvCacheManager>> MakeModelCache(
    const ModelConfig& config, const ModelCacheOptions& options,
    const PageLayout* host_pages) {
  KvCacheOptions cache;
  LayerGroup group;
  group.shape = CacheShape(config, options.dtype, options.block_tokens);
  cache.groups = {group};
  cache.host_blocks = BlockCount(options.blocks);
  cache.max_sequences = options.max_sequences;
  cache.max_tokens_per_sequence =
      options.max_tokens == 0 ? config.max_context : options.max_tokens;
  cache.prefix_caching = options.prefix_caching;
  cache.device.pages = BlockCount(options.device_pages);
  cache.memory = MemoryMode::kOwnMemory;
  if (host_pages != nullptr) {
    cache.memory = MemoryMode::kCallerMemory;
    cache.layouts = {*host_pages};
  }
  return KvCacheManager::Create(cache);
}

absl::StatusOr<attention::KvPages> PagesOf(const KvCacheManager& cache) {
  PAGED_KV_ASSIGN_OR_RETURN(const PageLayout layout, cache.Layout(kAllLayers));
  return attention::KvPages{cache.options().groups[kAllLayers.value()].shape,
                            layout, cache.PoolBlocks(kAllLayers).value()};
}

}  // namespace paged_kv::llm
