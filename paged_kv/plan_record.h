// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_PLAN_RECORD_H_
#define PAGED_KV_PLAN_RECORD_H_

#include <cstdint>
#include <string>

#include "paged_kv/lazy_array.h"
#include "paged_kv/prefix_index.h"
#include "paged_kv/step.h"

namespace paged_kv::internal {

// What the manager needs of a planned sequence besides what engines see.
struct PlanEntry {
  uint32_t slot;
  uint32_t reserve_tokens;
  uint32_t known_after;  // values known once committed
  uint64_t table_epoch;  // of the sequence once committed
  // kAdmit:
  uint32_t prompt_tokens;
  uint32_t extra_bytes;
  uint8_t priority;
  bool share;
  PrefixCursor cursor;  // of the cached prefix
  // Past this entry's in PlanRecord::new_blocks and ::copies.
  uint32_t new_blocks_end;
  uint32_t copies_end;
};

// A plan, then a step in flight. Records are made once and reused.
struct PlanRecord {
  enum class State : uint8_t { kUnused, kPlanned, kInFlight };

  State state = State::kUnused;
  // Which of the records this is: it names the quarantine list, in every pool,
  // of the blocks freed while this was the latest step in flight, and the
  // place of this step's ends in the sequence table.
  uint32_t number = 0;
  uint64_t ticket = 0;   // names the plan
  uint64_t version = 0;  // of the cache it was made for
  StepId step;           // once committed
  uint32_t layers_written = 0;

  LazyStack<PlannedSequence> sequences;
  LazyStack<PlanEntry> entries;  // parallel to sequences
  LazyStack<NewBlock> new_blocks;
  LazyStack<BlockCopy> copies;
  LazyStack<TierTransfer> transfers;
  std::string encoded_requests;  // for the operation log

  void Clear() {
    sequences.clear();
    entries.clear();
    new_blocks.clear();
    copies.clear();
    transfers.clear();
    encoded_requests.clear();
    layers_written = 0;
  }
  StepView View() const {
    return {absl::MakeSpan(sequences.data(), sequences.size()),
            absl::MakeSpan(new_blocks.data(), new_blocks.size()),
            absl::MakeSpan(copies.data(), copies.size()),
            absl::MakeSpan(transfers.data(), transfers.size())};
  }
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_PLAN_RECORD_H_
