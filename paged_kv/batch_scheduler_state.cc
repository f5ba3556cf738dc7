// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/time/time.h"

namespace paged_kv::internal {
namespace {

uint32_t ChunkTokens(const KvCacheOptions& options) {
  uint64_t tokens = 1;
  for (const LayerGroup& group : options.groups) {
    tokens = std::lcm(tokens, uint64_t{group.shape.block_tokens});
  }
  return static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX));
}

bool HasWindows(const KvCacheOptions& options) {
  return std::any_of(options.groups.begin(), options.groups.end(),
                     [](const LayerGroup& group) { return group.window > 0; });
}

size_t DevicePages(const KvCacheManager& cache) {
  size_t pages = 0;
  const CacheStats stats = cache.Stats();
  for (const DevicePoolStats& pool : stats.device_pools) {
    pages += pool.capacity.value();
  }
  return pages;
}

BatchSchedulerOptions WithDefaults(BatchSchedulerOptions options) {
  if (options.max_chunk_tokens == 0) {
    options.max_chunk_tokens = options.max_batch_tokens;
  }
  return options;
}

}  // namespace

SchedulerState::SchedulerState(KvCacheManager* cache_in, const Clock* clock_in,
                               const BatchSchedulerOptions& options_in)
    : cache(cache_in),
      clock(clock_in),
      options(WithDefaults(options_in)),
      chunk_tokens(ChunkTokens(cache->options())),
      has_windows(HasWindows(cache->options())),
      requests(options.max_requests, options.max_draft_tokens),
      running(options.max_batch_sequences),
      steps(options.max_steps_in_flight, options.max_batch_sequences),
      finished(options.max_requests),
      on_device(options.decode_tier == Tier::kDevice),
      transfers(on_device ? DevicePages(*cache) : 0) {}

absl::Time SchedulerState::Now() {
  last_now = std::max(last_now, clock->Now());
  return last_now;
}

uint64_t SchedulerState::AvailableBlocks() const {
  uint64_t blocks = 0;
  const size_t groups = cache->options().groups.size();
  for (uint32_t g = 0; g < groups; ++g) {
    blocks += cache->AvailableBlocks(GroupId(g)).value();
  }
  return blocks;
}

}  // namespace paged_kv::internal
