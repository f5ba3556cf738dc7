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
  std::vector<VirtualMemory> memory;  // per pool; kOwnMemory only
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

  // Counters of CacheStats.
  uint64_t sequences_admitted = 0;
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t blocks_taken = 0;
  uint64_t blocks_evicted = 0;
  uint64_t blocks_copied = 0;
  uint64_t unshared_chunks = 0;

  BlockPool& PoolOf(const GroupGeometry& group) { return *pools[group.pool]; }
  const BlockPool& PoolOf(const GroupGeometry& group) const {
    return *pools[group.pool];
  }
  uint64_t steps_in_flight() const { return last_step - retired_step; }

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
