// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/cache_state.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include <xxhash.h>

#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

uint64_t Xxh3(uint64_t seed, const void* data, size_t bytes) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Shortest run of tokens that is whole blocks in every group.
uint32_t ChunkTokens(const std::vector<LayerGroup>& groups) {
  uint32_t chunk = 1;
  for (const LayerGroup& group : groups) {
    chunk = std::lcm(chunk, group.shape.block_tokens);
  }
  return chunk;
}

// `members`: groups of each pool.
absl::Status MakeTiers(const std::vector<uint32_t>& members,
                       CacheState* state) {
  const DeviceTierOptions& device = state->options.device;
  uint32_t all_pages = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const uint32_t pages = (device.pages * members[i]).value();
    state->device_first_page.push_back(all_pages);
    all_pages += pages;
    state->tiers.push_back(std::make_unique<DeviceTier>());
    PAGED_KV_RETURN_IF_ERROR(state->tiers.back()->Create(
        state->pools[i]->capacity(), pages, device.splits,
        state->TransferQuarantine()));
  }
  PAGED_KV_RETURN_IF_ERROR(state->transfers.Create(all_pages));
  for (const auto& record : state->records) {
    PAGED_KV_RETURN_IF_ERROR(record->transfers.Create(all_pages));
  }
  const size_t splits = members.size() * device.splits;
  for (auto* counts : {&state->split_missing, &state->split_reused,
                       &state->split_distinct, &state->split_available}) {
    counts->resize(splits);
  }
  return absl::OkStatus();
}

// One pool per distinct (page size, block length), and who uses which.
absl::Status MakePools(CacheState* state) {
  const KvCacheOptions& options = state->options;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> pool_of;
  std::vector<uint32_t> members;
  std::vector<const BlockShape*> shapes;
  for (size_t i = 0; i < options.groups.size(); ++i) {
    const BlockShape& shape = options.groups[i].shape;
    const auto key = std::pair(PageBytes(shape).value(), shape.block_tokens);
    const auto [it, added] =
        pool_of.try_emplace(key, static_cast<uint32_t>(members.size()));
    if (added) {
      members.push_back(0);
      shapes.push_back(&shape);
    }
    ++members[it->second];
    state->groups[i].pool = it->second;
  }
  const uint32_t lists = state->TransferQuarantine() + 1;
  const EvictionPolicyFactory make_policy =
      options.eviction == nullptr ? &MakeLruPolicy : options.eviction;
  for (size_t i = 0; i < members.size(); ++i) {
    state->pools.push_back(std::make_unique<BlockPool>());
    PAGED_KV_RETURN_IF_ERROR(state->pools.back()->Create(
        options.host_blocks * members[i], shapes[i]->block_tokens, make_policy,
        lists, static_cast<uint32_t>(i)));
    if (options.memory != MemoryMode::kOwnMemory) continue;
    VirtualMemory memory;
    PAGED_KV_RETURN_IF_ERROR(memory.Map(
        (PageBytes(*shapes[i]) * state->pools[i]->capacity()).value()));
    if (options.numa_node >= 0) {
      PAGED_KV_RETURN_IF_ERROR(memory.BindToNode(options.numa_node));
    }
    state->memory.push_back(std::move(memory));
  }
  return options.device.pages == BlockCount(0) ? absl::OkStatus()
                                               : MakeTiers(members, state);
}

absl::Status MakeIndex(CacheState* state) {
  const KvCacheOptions& options = state->options;
  PrefixIndex::Config config;
  config.chunk_tokens = ChunkTokens(options.groups);
  config.hash = options.hash == nullptr ? &Xxh3 : options.hash;
  config.seed = options.hash_seed == 0 ? RandomSeed() : options.hash_seed;
  config.extra_bytes = options.index_extra_bytes;
  config.event_capacity = options.event_capacity;
  config.digest_domain = options.digest_domain;
  uint64_t nodes = 0;
  bool all_windowed = true;
  for (size_t i = 0; i < state->groups.size(); ++i) {
    GroupGeometry& group = state->groups[i];
    group.first_place = static_cast<uint32_t>(config.places.size());
    const uint32_t places = config.chunk_tokens / group.block_tokens;
    for (uint32_t place = 0; place < places; ++place) {
      config.places.push_back({GroupId(static_cast<uint32_t>(i)), place,
                               &state->PoolOf(group), group.block_tokens});
    }
    nodes = std::max<uint64_t>(nodes, state->PoolOf(group).capacity());
    all_windowed = all_windowed && group.window != 0;
  }
  // A node without blocks remains where a windowed group has released them
  // but still holds later ones; twice as many nodes leave room for those.
  if (all_windowed) nodes *= 2;
  config.nodes = static_cast<uint32_t>(
      std::min<uint64_t>(nodes + options.max_sequences, UINT32_MAX - 1));
  if (!options.prefix_caching) config.nodes = 0;
  state->index = std::make_unique<PrefixIndex>();
  return state->index->Create(config);
}

absl::Status MakeRecords(CacheState* state) {
  const KvCacheOptions& options = state->options;
  const size_t new_blocks =
      options.groups.size() * size_t{options.host_blocks.value()};
  for (size_t i = 0; i < state->records.size(); ++i) {
    auto& record = state->records[i];
    record = std::make_unique<PlanRecord>();
    record->number = static_cast<uint32_t>(i);
    PAGED_KV_RETURN_IF_ERROR(record->sequences.Create(options.max_sequences));
    PAGED_KV_RETURN_IF_ERROR(record->entries.Create(options.max_sequences));
    PAGED_KV_RETURN_IF_ERROR(record->new_blocks.Create(new_blocks));
    PAGED_KV_RETURN_IF_ERROR(record->copies.Create(
        size_t{options.max_sequences} * options.groups.size()));
  }
  return absl::OkStatus();
}

}  // namespace

PlanRecord* CacheState::FindStep(StepId step) const {
  for (const auto& record : records) {
    if (record->state == PlanRecord::State::kInFlight && record->step == step) {
      return record.get();
    }
  }
  return nullptr;
}

uint32_t CacheState::CurrentQuarantine() const {
  if (steps_in_flight() == 0) return DeviceTier::kNoList;
  const PlanRecord* latest = FindStep(StepId(last_step));
  PAGED_KV_CHECK(latest != nullptr);
  return latest->number;
}

PlanRecord& CacheState::UnusedRecord() {
  for (auto& record : records) {
    if (record->state == PlanRecord::State::kUnused) return *record;
  }
  PAGED_KV_CHECK(false);
}

absl::Status MakeState(const KvCacheOptions& options, CacheState* state) {
  state->options = options;
  uint64_t offset = 0;
  for (const LayerGroup& group : options.groups) {
    GroupGeometry geometry;
    geometry.block_tokens = group.shape.block_tokens;
    geometry.window = group.window;
    geometry.sink_blocks =
        group.window == 0 ? 0 : geometry.BlocksFor(group.sink_tokens);
    geometry.table_width = geometry.BlocksFor(options.max_tokens_per_sequence);
    geometry.table_offset = offset;
    offset += geometry.table_width;
    state->groups.push_back(geometry);
  }
  // One more than can be in flight: the plan being made.
  state->records.resize(size_t{options.max_steps_in_flight} + 1);
  PAGED_KV_RETURN_IF_ERROR(MakeRecords(state));
  PAGED_KV_RETURN_IF_ERROR(MakePools(state));
  PAGED_KV_RETURN_IF_ERROR(MakeIndex(state));
  PAGED_KV_RETURN_IF_ERROR(state->sequences.Create(
      options.max_sequences, options.max_pins, options.max_tokens_per_sequence,
      options.max_extra_bytes_per_sequence,
      static_cast<uint32_t>(state->records.size()), state->groups));
  state->extras_scratch.reserve(options.max_extra_bytes_per_sequence);
  state->recorder = OpRecorder(options.op_log, options);
  return absl::OkStatus();
}

CacheStats MakeStats(const CacheState& state) {
  CacheStats stats;
  for (const auto& pool : state.pools) stats.pools.push_back(pool->Stats());
  stats.sequences = state.sequences.living();
  stats.pins = state.sequences.pins();
  stats.steps_in_flight = static_cast<uint32_t>(state.steps_in_flight());
  stats.steps_committed = state.last_step;
  stats.steps_retired = state.retired_step;
  stats.sequences_admitted = state.sequences_admitted;
  stats.prompt_tokens = state.prompt_tokens;
  stats.hit_tokens = state.hit_tokens;
  stats.blocks_taken = state.blocks_taken;
  stats.blocks_evicted = state.blocks_evicted;
  stats.blocks_copied = state.blocks_copied;
  stats.unshared_chunks = state.unshared_chunks;
  for (const auto& tier : state.tiers) {
    stats.device_pools.push_back(tier->Stats());
    stats.device_evictions += tier->evictions();
  }
  stats.uploads_started = state.uploads_started;
  stats.downloads_started = state.downloads_started;
  stats.transfers_failed = state.transfers_failed;
  stats.events_dropped = state.index->events().dropped();
  return stats;
}

double MetadataBytesPerBlock(const CacheState& state) {
  uint64_t blocks = 0;
  for (const auto& pool : state.pools) blocks += pool->capacity();
  const uint64_t nodes = state.index->capacity();
  const uint64_t bytes =
      blocks * sizeof(BlockMeta) +
      (nodes - std::min<uint64_t>(nodes, state.options.max_sequences)) *
          state.index->BytesPerNode();
  return static_cast<double>(bytes) / static_cast<double>(blocks);
}

}  // namespace paged_kv::internal
