// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the model says about steps, and about the life of blocks.

#include <algorithm>
#include <utility>

#include "paged_kv/check.h"
#include "tests/support/reference_kv_cache.h"

namespace paged_kv::testing {

using absl::StatusCode;

// ---- Life of blocks ----

void ReferenceKvCache::TakeBlock(uint32_t pool, uint32_t block) {
  ++counters_.blocks_taken;
  if (pools_[pool][block].state == ReferenceState::kCached) {
    ++counters_.blocks_evicted;
    DropContent(pool, block);
  }
  pools_[pool].Take(block);
}

// Freed while any step is in flight: kept until the latest step has retired,
// for it and those before it may still use the block.
void ReferenceKvCache::ReleaseBlock(uint32_t pool, uint32_t block,
                                    uint32_t priority) {
  pools_[pool].RaisePriority(block, priority);
  if (!pools_[pool].DropRef(block)) return;
  if (in_flight_.empty()) {
    SettleBlock(pool, block);
  } else {
    pools_[pool].Quarantine(block, in_flight_.back().id.value());
  }
}

// Content is kept once. If another copy (the next one, else the one before)
// waits for eviction, the block takes its place at the young end; if it is in
// use or in quarantine, the block is free.
void ReferenceKvCache::SettleBlock(uint32_t pool, uint32_t block) {
  ReferencePool& blocks = pools_[pool];
  for (;;) {
    const ReferenceBlock& settled = blocks[block];
    if (settled.content == nullptr) {
      blocks.ToFree(block);
      return;
    }
    const auto& copies = settled.content->copies[settled.place];
    if (copies.size() == 1) {
      blocks.ToCached(block);
      return;
    }
    const size_t at = static_cast<size_t>(
        std::find(copies.begin(), copies.end(), block) - copies.begin());
    const uint32_t other =
        at + 1 < copies.size() ? copies[at + 1] : copies[at - 1];
    if (blocks[other].state != ReferenceState::kCached) {
      blocks.RaisePriority(other, settled.priority);
      DropContent(pool, block);
      blocks.ToFree(block);
      return;
    }
    blocks.RaisePriority(block, blocks[other].priority);
    blocks.Uncache(other);
    DropContent(pool, other);
    blocks.ToFree(other);
  }
}

// Last block first, so that a prefix outlives what follows it.
void ReferenceKvCache::ReleaseFrom(ReferenceSequence* sequence, uint32_t g,
                                   uint32_t keep) {
  std::vector<uint32_t>& blocks = sequence->tables[g].blocks;
  while (blocks.size() > keep) {
    const uint32_t block = blocks.back();
    blocks.pop_back();
    if (block != kNoReferenceBlock) {
      ReleaseBlock(groups_[g].pool, block, sequence->priority);
    }
  }
}

void ReferenceKvCache::ReleaseOutsideWindow(ReferenceSequence* sequence) {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    const ReferenceGroup& group = groups_[g];
    ReferenceTable& table = sequence->tables[g];
    const uint32_t needed = group.FirstNeeded(sequence->written);
    if (needed <= table.first) continue;
    for (uint32_t i = needed; i-- > std::max(table.first, group.sink_blocks);) {
      ReleaseBlock(group.pool, table.blocks[i], sequence->priority);
      table.blocks[i] = kNoReferenceBlock;
    }
    table.first = needed;
  }
}

// Counts anew the slots of the blocks from token `first` on that the sequence
// alone holds and that are not shareable.
void ReferenceKvCache::UpdateFill(ReferenceSequence* sequence, uint32_t first) {
  const uint32_t tokens = sequence->tokens;
  const uint32_t end = tokens + sequence->lookahead;
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    const uint32_t size = groups_[g].block_tokens;
    const std::vector<uint32_t>& blocks = sequence->tables[g].blocks;
    for (uint32_t i = first / size; i < blocks.size(); ++i) {
      ReferencePool& pool = pools_[groups_[g].pool];
      if (blocks[i] == kNoReferenceBlock) continue;
      const ReferenceBlock& block = pool[blocks[i]];
      if (block.refs > 1 || block.content != nullptr) continue;
      const auto below = [&](uint32_t limit) {
        return std::min(size, limit - std::min(limit, i * size));
      };
      pool.SetFill(blocks[i], below(tokens), below(end) - below(tokens));
    }
  }
}

// ---- Steps ----

void ReferenceKvCache::Commit(const ReferencePlan& plan,
                              absl::Span<const StepRequest> requests,
                              const StepView& view, StepId step) {
  in_flight_.push_back({step, 0, {}});
  ++counters_.steps_committed;
  // Hits first, so that nothing that the step takes is one of them.
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& planned = plan.sequences[i];
    if (planned.kind != StepRequest::Kind::kAdmit) continue;
    const StepRequest& request = requests[planned.request];
    ReferenceSequence* sequence = Open(view.sequences[i].id);
    sequence->share = request.share && options_.prefix_caching;
    sequence->priority = request.priority;
    sequence->extras = plan.entries[i].extras;
    HoldPrefix({planned.cached_tokens.value(), plan.entries[i].hit}, sequence);
    sequence->known.assign(request.tokens.begin(), request.tokens.end());
    ++counters_.sequences_admitted;
    counters_.prompt_tokens += request.tokens.size();
    counters_.hit_tokens += planned.cached_tokens.value();
  }
  for (const NewBlock& block : view.new_blocks) {
    const uint32_t g = block.group.value();
    ReferenceSequence* sequence = Mutable(view.sequences[block.sequence].id);
    TakeBlock(groups_[g].pool, block.block.value());
    PAGED_KV_CHECK(sequence->tables[g].blocks.size() == block.logical);
    sequence->tables[g].blocks.push_back(block.block.value());
  }
  for (const BlockCopy& copy : view.copies) {
    const uint32_t g = copy.group.value();
    const uint32_t p = groups_[g].pool;
    const uint32_t size = groups_[g].block_tokens;
    const PlannedSequence& planned = view.sequences[copy.sequence];
    ReferenceSequence* sequence = Mutable(planned.id);
    TakeBlock(p, copy.target.value());
    sequence->tables[g].blocks[planned.first_new.value() / size] =
        copy.target.value();
    pools_[p].SetFill(copy.target.value(), copy.filled_tokens, 0);
    std::vector<uint64_t>& written = pools_[p].written();
    std::copy_n(written.begin() + ptrdiff_t{copy.source.value()} * size,
                copy.filled_tokens,
                written.begin() + ptrdiff_t{copy.target.value()} * size);
    ++counters_.blocks_copied;
    ReleaseBlock(p, copy.source.value(), sequence->priority);
  }
  for (const PlannedSequence& planned : view.sequences) {
    CommitPart(planned, requests[planned.request]);
  }
}

void ReferenceKvCache::CommitPart(const PlannedSequence& planned,
                                  const StepRequest& request) {
  ReferenceSequence* sequence = Mutable(planned.id);
  const uint32_t first_new = planned.first_new.value();
  const uint32_t end = planned.Context().value();
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    const uint32_t size = groups_[g].block_tokens;
    const uint32_t p = groups_[g].pool;
    const std::vector<uint32_t>& blocks = sequence->tables[g].blocks;
    // A shareable block that was cut back is about to be overwritten.
    if (first_new % size != 0) {
      const uint32_t tail = blocks[first_new / size];
      if (pools_[p][tail].content != nullptr) DropContent(p, tail);
      PAGED_KV_CHECK(pools_[p][tail].refs == 1);
    }
    uint64_t write = next_write_;
    for (uint32_t pos = first_new; pos < end; ++pos) {
      pools_[p].written()[uint64_t{blocks[pos / size]} * size + pos % size] =
          write++;
    }
  }
  next_write_ += end - first_new;
  sequence->tokens = first_new + planned.new_tokens.value();
  sequence->lookahead = planned.lookahead.value();
  if (planned.kind == StepRequest::Kind::kExtend) {
    sequence->known.insert(sequence->known.end(), request.tokens.begin(),
                           request.tokens.end());
  }
  UpdateFill(sequence, first_new);
  ++sequence->table_version;
  sequence->last_step = in_flight_.back().id.value();
  in_flight_.back().parts.push_back(
      {planned.id, sequence->tokens, sequence->table_version});
}

StatusCode ReferenceKvCache::Retire(StepId step) {
  if (FindStep(step) == nullptr) return StatusCode::kNotFound;
  if (in_flight_.front().id != step) return StatusCode::kFailedPrecondition;
  const ReferenceStep retired = std::move(in_flight_.front());
  in_flight_.pop_front();
  ++counters_.steps_retired;
  for (const ReferenceStep::Part& part : retired.parts) {
    ReferenceSequence* sequence = Mutable(part.id);
    if (sequence == nullptr) continue;
    sequence->written = std::max(sequence->written, part.end);
    ShareWritten(sequence);
    ReleaseOutsideWindow(sequence);
  }
  for (uint32_t p = 0; p < pools_.size(); ++p) {
    const std::list<uint32_t>& waiting = pools_[p].quarantined();
    for (auto it = waiting.begin(); it != waiting.end();) {
      const uint32_t block = *it++;
      if (pools_[p][block].fence != step.value()) continue;
      pools_[p].EndQuarantine(block);
      SettleBlock(p, block);
    }
  }
  return StatusCode::kOk;
}

// Layers count from 0 over all groups.
StatusCode ReferenceKvCache::MarkWritten(StepId step, uint32_t layer) {
  uint32_t layers = 0;
  for (const LayerGroup& group : options_.groups) layers += group.shape.layers;
  for (ReferenceStep& flying : in_flight_) {
    if (flying.id != step) continue;
    if (layer >= layers) return StatusCode::kInvalidArgument;
    flying.layers_written = std::max(flying.layers_written, layer + 1);
    return StatusCode::kOk;
  }
  return StatusCode::kNotFound;
}

}  // namespace paged_kv::testing
