// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/step_commit.h"

#include <algorithm>

#include "paged_kv/block_lifecycle.h"
#include "paged_kv/check.h"
#include "paged_kv/prefix_lookup.h"
#include "paged_kv/residency.h"
#include "paged_kv/sequence_edit.h"
#include "paged_kv/tier_swap.h"

namespace paged_kv::internal {
namespace {

// Opens the sequence of an admission with its cached prefix. Hits come before
// any eviction of the step, so that none of them can be evicted.
void OpenSequence(CacheState* state, const PlannedSequence& planned,
                  const PlanEntry& entry, PlanRecord* record) {
  Sequence& sequence = state->sequences.Open(entry.slot, /*is_pin=*/false);
  PAGED_KV_CHECK(state->sequences.IdOf(entry.slot) == planned.id);
  const uint32_t cached = planned.cached_tokens.value();
  sequence.share = entry.share;
  sequence.priority = entry.priority;
  sequence.extra_bytes = entry.extra_bytes;
  HoldPrefix(state, entry.slot, {cached, entry.cursor});
  StartDownloads(state, entry.slot, &record->transfers);
  ++state->sequences_admitted;
  state->prompt_tokens += entry.prompt_tokens;
  state->hit_tokens += cached;
}

void TakeBlocks(CacheState* state, PlanRecord* record) {
  for (size_t i = 0; i < record->new_blocks.size(); ++i) {
    NewBlock& planned = record->new_blocks[i];
    const uint32_t slot = record->entries[planned.sequence].slot;
    const uint32_t g = planned.group.value();
    const GroupGeometry& group = state->groups[g];
    const BlockId block = TakeBlock(state, &state->PoolOf(group));
    PAGED_KV_CHECK(block == planned.block);
    state->sequences.blocks(slot, group)[planned.logical] = block;
    state->sequences.extent(slot, g).size = planned.logical + 1;
    if (IsOnDevice(state->sequences.at(slot))) {
      planned.device_page =
          SeatNewBlock(state, slot, g, planned.logical, block);
    }
  }
  for (size_t i = 0; i < record->copies.size(); ++i) {
    BlockCopy& copy = record->copies[i];
    const uint32_t slot = record->entries[copy.sequence].slot;
    const GroupGeometry& group = state->groups[copy.group.value()];
    BlockPool& pool = state->PoolOf(group);
    const BlockId block = TakeBlock(state, &pool);
    PAGED_KV_CHECK(block == copy.target);
    const uint32_t logical =
        record->sequences[copy.sequence].first_new.value() / group.block_tokens;
    state->sequences.blocks(slot, group)[logical] = block;
    copy.source_page = copy.source.value();
    copy.target_page = copy.target.value();
    if (IsOnDevice(state->sequences.at(slot))) {
      copy.tier = Tier::kDevice;
      copy.source_page = state->TierOf(pool)->PageOf(copy.source);
      copy.target_page =
          SeatNewBlock(state, slot, copy.group.value(), logical, block);
      Unseat(state, pool, copy.source);
    }
    ++state->blocks_copied;
    ReleaseBlock(state, &pool, copy.source, state->sequences.at(slot).priority);
  }
}

// A full shareable block that was cut back to a partial one is about to be
// overwritten by its only owner.
void UnshareTail(CacheState* state, const PlannedSequence& planned,
                 uint32_t slot) {
  const uint32_t first_new = planned.first_new.value();
  for (const GroupGeometry& group : state->groups) {
    if (first_new % group.block_tokens == 0) continue;
    BlockPool& pool = state->PoolOf(group);
    const BlockId tail =
        state->sequences.blocks(slot, group)[first_new / group.block_tokens];
    if (pool.shareable(tail)) state->index->Detach(&pool, tail);
    PAGED_KV_CHECK(pool.writable(tail));
  }
}

// Blocks of windowed groups that no token from `tokens` on attends to.
void ReleaseOutsideWindow(CacheState* state, uint32_t slot, uint32_t tokens) {
  const Sequence& sequence = state->sequences.at(slot);
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    BlockTableExtent& extent = state->sequences.extent(slot, g);
    const uint32_t needed = group.FirstNeeded(tokens);
    if (needed <= extent.first) continue;
    BlockId* table = state->sequences.blocks(slot, group);
    const uint32_t first = std::max(extent.first, group.sink_blocks);
    // Last first, like Free: what follows is evicted before its prefix.
    for (uint32_t logical = needed; logical-- > first;) {
      BlockPool& pool = state->PoolOf(group);
      if (IsSeated(sequence, group, logical)) {
        Unseat(state, pool, table[logical]);
      }
      ReleaseBlock(state, &pool, table[logical], sequence.priority);
      table[logical] = kNoBlock;
    }
    extent.first = needed;
  }
}

}  // namespace

void CommitStep(CacheState* state, PlanRecord* record) {
  record->step = StepId(++state->last_step);
  record->state = PlanRecord::State::kInFlight;
  for (size_t i = 0; i < record->entries.size(); ++i) {
    if (record->sequences[i].kind == StepRequest::Kind::kAdmit) {
      OpenSequence(state, record->sequences[i], record->entries[i], record);
    }
  }
  TakeBlocks(state, record);
  for (size_t i = 0; i < record->entries.size(); ++i) {
    const PlannedSequence& planned = record->sequences[i];
    PlanEntry& entry = record->entries[i];
    Sequence& sequence = state->sequences.at(entry.slot);
    UnshareTail(state, planned, entry.slot);
    const uint32_t old_end = sequence.tokens + sequence.lookahead;
    sequence.tokens = planned.first_new.value() + planned.new_tokens.value();
    sequence.lookahead = planned.lookahead.value();
    sequence.known = entry.known_after;
    sequence.last_step = record->step.value();
    NoteWrites(state, entry.slot, planned.first_new.value(),
               planned.Context().value());
    state->sequences.write_end(entry.slot, record->number) = sequence.tokens;
    UpdateFill(state, entry.slot, planned.first_new.value(), old_end);
    entry.table_epoch = ++sequence.table_epoch;
  }
}

void RetireStep(CacheState* state, PlanRecord* record) {
  state->retired_step = record->step.value();
  record->state = PlanRecord::State::kUnused;
  for (size_t i = 0; i < record->entries.size(); ++i) {
    const PlannedSequence& planned = record->sequences[i];
    const uint32_t slot = state->sequences.Find(planned.id);
    if (slot == SequenceTable::kNone) continue;  // freed meanwhile
    Sequence& sequence = state->sequences.at(slot);
    sequence.written = std::max(
        sequence.written, state->sequences.write_end(slot, record->number));
    IndexWritten(state, slot);
    ReleaseOutsideWindow(state, slot, sequence.written);
  }
  const uint32_t list = record->number;
  for (const auto& tier : state->tiers) tier->EndQuarantine(list);
  for (const auto& pool : state->pools) {
    for (BlockId block = pool->PopQuarantine(list); block != kNoBlock;
         block = pool->PopQuarantine(list)) {
      SettleBlock(state, pool.get(), block);
    }
  }
}

}  // namespace paged_kv::internal
