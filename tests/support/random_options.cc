// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_options.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace paged_kv::testing {
namespace {

uint64_t ConstantHash(uint64_t, const void*, size_t) { return 7; }

LayerGroup MakeGroup(uint32_t block_tokens, uint32_t window, uint32_t sinks) {
  LayerGroup group;
  group.shape.block_tokens = block_tokens;
  group.window = window;
  group.sink_tokens = sinks;
  return group;
}

uint32_t AnyOf(std::initializer_list<uint32_t> values, RandomBits* random) {
  return values.begin()[random->Below(static_cast<uint32_t>(values.size()))];
}

void AddGroups(uint32_t kind, RandomBits* random, RandomCache* cache) {
  std::vector<LayerGroup>& groups = cache->options.groups;
  const uint32_t block = AnyOf({1, 2, 3, 4, 8, 16, 32}, random);
  const uint32_t window = random->Between(1, 4 * block + 3);
  const uint32_t sinks = random->OneIn(2) ? random->Between(1, 2 * block) : 0;
  switch (kind) {
    case 0:
      groups = {MakeGroup(4, 0, 0)};
      cache->name = "plain";
      return;
    case 1:
      groups = {MakeGroup(block, 0, 0)};
      cache->name = "any block";
      return;
    case 2:
      groups = {MakeGroup(block, window, 0)};
      cache->name = "window";
      return;
    case 3:
      groups = {MakeGroup(block, window, std::max(sinks, 1u))};
      cache->name = "window and sinks";
      return;
    case 4:  // one pool for both
      groups = {MakeGroup(4, 0, 0), MakeGroup(4, 9, sinks)};
      cache->name = "two groups, one pool";
      return;
    case 5: {
      groups = {MakeGroup(4, 0, 0), MakeGroup(4, 10, sinks)};
      groups[1].shape.kv_heads = 2;
      cache->name = "two groups, two pools";
      return;
    }
    case 6:
      groups = {MakeGroup(2, 0, 0), MakeGroup(4, 0, 0)};
      cache->name = "two block sizes";
      return;
    case 7:
      groups = {MakeGroup(4, 11, 0), MakeGroup(6, 17, 6)};
      cache->name = "two windows, chunk 12";
      return;
    default:
      groups = {MakeGroup(AnyOf({2, 4, 8}, random), 0, 0)};
      return;
  }
}

}  // namespace

RandomCache MakeRandomCache(uint32_t kind, uint64_t seed, uint32_t blocks) {
  kind %= kRandomCacheKinds;
  RandomBits random(seed ^ (uint64_t{kind} << 56));
  RandomCache cache;
  KvCacheOptions& options = cache.options;
  AddGroups(kind, &random, &cache);
  uint32_t block = 1;
  for (const LayerGroup& group : options.groups) {
    block = std::max(block, group.shape.block_tokens);
  }
  options.host_blocks =
      BlockCount(blocks != 0 ? blocks : random.Between(3, 40));
  // Few enough to be at the limit at times, enough to fill the pool.
  options.max_sequences =
      random.Between(3, std::max(24u, options.host_blocks.value() / 3));
  options.max_steps_in_flight = kind == 0 ? 2 : random.Between(1, 3);
  options.max_pins = random.Between(0, 3);
  options.hash_seed = 1;
  // Prompts of up to six blocks or 40 tokens, sequences of twice that.
  cache.workload.longest_prompt = std::min(6 * block, 24 + 4 * block);
  cache.workload.longest_append = block + block / 2 + 1;
  options.max_tokens_per_sequence = 2 * cache.workload.longest_prompt + 3;
  switch (kind) {
    case 8:
      options.watermark_blocks = BlockCount(
          random.Between(1, std::max(1u, options.host_blocks.value() / 3)));
      cache.name = "watermark";
      break;
    case 9:
      options.eviction = &MakeSegmentedLruPolicy;
      cache.name = "segmented LRU";
      break;
    case 10:
      options.hash = &ConstantHash;
      cache.name = "constant hash";
      break;
    case 11:
      options.event_capacity = random.Between(1, 64);
      options.index_extra_bytes = 64 * random.Between(0, 4);
      options.max_extra_bytes_per_sequence = random.Between(9, 64);
      cache.name = "events and little room for extras";
      break;
    case 12:
      options.prefix_caching = random.OneIn(3);
      options.host_blocks = BlockCount(
          std::min(options.host_blocks.value(), random.Between(1, 8)));
      cache.name = "tiny";
      break;
    default:
      break;
  }
  absl::StrAppend(&cache.name, ", ", options.host_blocks.value(),
                  " blocks of ");
  for (const LayerGroup& group : options.groups) {
    absl::StrAppend(&cache.name, group.shape.block_tokens, " (window ",
                    group.window, ", sinks ", group.sink_tokens, ") ");
  }
  return cache;
}

}  // namespace paged_kv::testing
