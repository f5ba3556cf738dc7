// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_fit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::internal {
namespace {

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

bool ShareOnePool(const BlockShape& a, const BlockShape& b) {
  return PageBytes(a) == PageBytes(b) && a.block_tokens == b.block_tokens;
}

uint64_t MaxBlocksHeld(const LayerGroup& group, uint64_t tokens,
                       uint64_t tokens_in_flight) {
  const uint64_t block_tokens = group.shape.block_tokens;
  const uint64_t all = DivideUp(tokens, block_tokens);
  if (group.window == 0) return all;
  // The oldest token not yet written sees window - 1 tokens before it; the
  // run from there to the newest may begin and end inside a block.
  const uint64_t run = tokens_in_flight + group.window - 1;
  return std::min(all, DivideUp(group.sink_tokens, block_tokens) +
                           DivideUp(run, block_tokens) + 1);
}

absl::Status CheckFitsEmptyCache(const KvCacheManager& cache, uint64_t tokens,
                                 uint64_t tokens_in_flight) {
  const std::vector<LayerGroup>& groups = cache.options().groups;
  const uint64_t watermark = cache.options().watermark_blocks.value();
  for (size_t g = 0; g < groups.size(); ++g) {
    uint64_t needed = 0;
    for (const LayerGroup& group : groups) {
      if (!ShareOnePool(group.shape, groups[g].shape)) continue;
      needed += MaxBlocksHeld(group, tokens, tokens_in_flight);
    }
    const GroupId id(static_cast<uint32_t>(g));
    const uint64_t capacity = cache.PoolBlocks(id).value();
    if (needed + watermark > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("never fits: ", tokens, " tokens need ", needed,
                       " blocks of the pool of group ", g, ", which has ",
                       capacity, " and keeps ", watermark, " as watermark"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFitsEmptyDevice(const KvCacheManager& cache, uint64_t tokens,
                                  uint64_t tokens_in_flight, bool copies) {
  const std::vector<LayerGroup>& groups = cache.options().groups;
  const DeviceTierOptions& device = cache.options().device;
  const uint64_t watermark = device.watermark_pages.value();
  for (size_t g = 0; g < groups.size(); ++g) {
    uint64_t needed = 0;
    uint64_t capacity = 0;
    for (const LayerGroup& group : groups) {
      if (!ShareOnePool(group.shape, groups[g].shape)) continue;
      const uint64_t blocks = MaxBlocksHeld(group, tokens, tokens_in_flight);
      needed += DivideUp(blocks, device.splits);
      // Sinks and window are two runs, each of which may begin in any split.
      needed += group.window > 0 ? 1 : 0;
      needed += copies ? 1 : 0;
      capacity += device.pages.value() / device.splits;
    }
    if (needed + watermark > capacity) {
      return absl::OutOfRangeError(absl::StrCat(
          "never fits: ", tokens, " tokens need ", needed,
          " device pages of a split of the pool of group ", g, ", which has ",
          capacity, " and keeps ", watermark, " as watermark"));
    }
  }
  return absl::OkStatus();
}

}  // namespace paged_kv::internal
