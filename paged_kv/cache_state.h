// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_CACHE_STATE_H_
#define PAGED_KV_CACHE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "paged_kv/block_pool.h"
#include "paged_kv/cache_stats.h"
#include "paged_kv/device_tier.h"
#include "paged_kv/group_geometry.h"
#include "paged_kv/kv_cache_options.h"
#include "paged_kv/op_recorder.h"
#include "paged_kv/plan_record.h"
#include "paged_kv/prefix_index.h"
#include "paged_kv/sequence_table.h"
#include "paged_kv/types.h"
#include "paged_kv/virtual_memory.h"

namespace paged_kv::internal {

// Everything a manager is made of. The parts know nothing of each other; what
// joins them is in files named for what they do: block_lifecycle,
// prefix_lookup, step_planner, step_commit, sequence_edit, page_table_export,
// state_check.
struct CacheState {
  KvCacheOptions options;
  std::vector<GroupGeometry> groups;
  std::vector<std::unique_ptr<BlockPool>> pools;
  std::vector<VirtualMemory> memory;               // per pool; kOwnMemory only
  std::vector<std::unique_ptr<DeviceTier>> tiers;  // per pool, or none at all
  std::unique_ptr<PrefixIndex> index;
  SequenceTable sequences;
  OpRecorder recorder;

  // Plans and steps.
  std::vector<std::unique_ptr<PlanRecord>> records;
  uint64_t version = 0;       // counts changes of the cache
  uint64_t last_ticket = 0;   // of the latest plan
  uint64_t last_step = 0;     // latest committed
  uint64_t retired_step = 0;  // latest retired
  std::string extras_scratch;

  // Device tier.
  LazyStack<TierTransfer> transfers;        // of the latest swap
  uint64_t last_swap = 0;                   // counts them
  std::vector<uint32_t> device_first_page;  // per pool, among all pages
  // [pool][split], while a swap or a step is planned.
  std::vector<uint32_t> split_missing, split_reused, split_distinct;
  std::vector<uint32_t> split_available;

  // Counters of CacheStats.
  uint64_t sequences_admitted = 0;
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t blocks_taken = 0;
  uint64_t blocks_evicted = 0;
  uint64_t blocks_copied = 0;
  uint64_t unshared_chunks = 0;
  uint64_t uploads_started = 0;
  uint64_t downloads_started = 0;
  uint64_t transfers_failed = 0;

  BlockPool& PoolOf(const GroupGeometry& group) { return *pools[group.pool]; }
  const BlockPool& PoolOf(const GroupGeometry& group) const {
    return *pools[group.pool];
  }
  // Null without a device tier.
  DeviceTier* TierOf(const BlockPool& pool) {
    return tiers.empty() ? nullptr : tiers[pool.number()].get();
  }
  const DeviceTier* TierOf(const BlockPool& pool) const {
    return tiers.empty() ? nullptr : tiers[pool.number()].get();
  }
  uint64_t steps_in_flight() const { return last_step - retired_step; }
  // The quarantine of what is freed now; kNoList if no step is in flight.
  uint32_t CurrentQuarantine() const;
  // The quarantine, in every pool, of blocks that wait for a transfer.
  uint32_t TransferQuarantine() const {
    return static_cast<uint32_t>(records.size());
  }

  // The record of a step in flight; null if there is none.
  PlanRecord* FindStep(StepId step) const;
  // A record that is neither planned nor in flight; there always is one.
  PlanRecord& UnusedRecord();
};

// Makes the parts. REQUIRES: Validate(options) is OK.
absl::Status MakeState(const KvCacheOptions& options, CacheState* state);

CacheStats MakeStats(const CacheState& state);

// Bookkeeping per block of the largest pool, without stored tokens, digests,
// extras and what is bounded by the number of sequences.
double MetadataBytesPerBlock(const CacheState& state);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_CACHE_STATE_H_
