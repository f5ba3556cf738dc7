// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/step_planner.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/check.h"
#include "paged_kv/prefix_lookup.h"
#include "paged_kv/residency.h"
#include "paged_kv/shortage.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

// Blocks per pool, without allocation.
using PoolCounts = absl::InlinedVector<uint32_t, kMaxGroups>;

// Plans one request after the other. While it works, references that the step
// would add or drop are counted ahead in the pools, so that each request sees
// the effect of those before it and evictions pass over blocks that are hits;
// the destructor takes them back.
class Planner {
 public:
  Planner(CacheState* state, PlanRecord* record)
      : state_(*state), record_(*record) {
    for (const auto& pool : state_.pools) {
      available_.push_back(pool->available());
    }
    CountDevicePages(&state_.split_available);
  }
  ~Planner();

  // On error nothing of the request stays in the plan.
  absl::Status Add(const StepRequest& request, uint32_t index);
  // Names the blocks. REQUIRES: all requests are added.
  void ChooseBlocks();

 private:
  absl::Status AddExtend(const StepRequest& request, uint32_t index);
  absl::Status AddAdmit(const StepRequest& request, uint32_t index);

  // The blocks with which a sequence at `table` (per group) grows to what
  // `planned` asks for, and the check that there are enough.
  absl::Status AddBlocks(const PlannedSequence& planned, const PlanEntry& entry,
                         bool admission);
  absl::Status CheckRoom(const PoolCounts& needed, const PoolCounts& alone,
                         bool admission) const;
  // Pages of every [pool][split] that can be taken; none without a device.
  void CountDevicePages(std::vector<uint32_t>* available) const;
  // The pages that the sequence, which is on the device, grows by: blocks
  // [extent.size, BlocksFor(end)) of every group and the copies from `copies`
  // on. Takes them from what is available if there are enough.
  absl::Status TakeDevicePages(const PlanEntry& entry, uint32_t end,
                               size_t copies);
  absl::Status CheckLength(uint64_t tokens, uint64_t reserve) const;
  BlockTableExtent Extent(const PlannedSequence& planned,
                          const PlanEntry& entry, uint32_t g) const;
  void CountHits(const PrefixHit& hit, int change);
  // FindPrefix(), short of blocks that earlier requests will have overwritten.
  PrefixHit FindHit(absl::Span<const TokenId> prompt,
                    absl::string_view frames) const;
  bool WritesInto(uint32_t pool, BlockId block) const;

  CacheState& state_;
  PlanRecord& record_;
  // For the requests still to come. Below 0 while a request is looked at whose
  // hits are cached blocks that earlier requests count on evicting.
  absl::InlinedVector<int64_t, kMaxGroups> available_;
  uint32_t admissions_ = 0;
  bool overwrites_ = false;  // a request so far writes into shareable blocks
};

Planner::~Planner() {
  for (size_t i = 0; i < record_.entries.size(); ++i) {
    const PlannedSequence& planned = record_.sequences[i];
    if (planned.kind != StepRequest::Kind::kAdmit) continue;
    CountHits({planned.cached_tokens.value(), record_.entries[i].cursor}, -1);
  }
  for (size_t i = 0; i < record_.copies.size(); ++i) {
    const BlockCopy& copy = record_.copies[i];
    state_.PoolOf(state_.groups[copy.group.value()])
        .CountRefAhead(copy.source, 1);
  }
}

void Planner::CountHits(const PrefixHit& hit, int change) {
  ForEachHitBlock(state_, hit, [&](uint32_t g, uint32_t, BlockId block) {
    const uint32_t pool = state_.groups[g].pool;
    BlockPool& blocks = *state_.pools[pool];
    if (change < 0) blocks.CountRefAhead(block, -1);
    // A cached block without holders can be hit or evicted, not both.
    if (blocks.state(block) == BlockState::kCached &&
        blocks.meta(block).refs == 0 && !IsHeldBack(state_, blocks, block)) {
      available_[pool] -= change;
    }
    if (change > 0) blocks.CountRefAhead(block, 1);
  });
}

// True if a request so far extends a sequence in place in this block.
bool Planner::WritesInto(uint32_t pool, BlockId block) const {
  for (size_t i = 0; i < record_.entries.size(); ++i) {
    const PlannedSequence& planned = record_.sequences[i];
    if (planned.kind != StepRequest::Kind::kExtend) continue;
    for (uint32_t g = 0; g < state_.groups.size(); ++g) {
      const GroupGeometry& group = state_.groups[g];
      const uint32_t first_new = planned.first_new.value();
      if (group.pool != pool || first_new % group.block_tokens == 0 ||
          state_.sequences.blocks(record_.entries[i].slot,
                                  group)[first_new / group.block_tokens] !=
              block) {
        continue;
      }
      bool copies = false;
      const uint32_t end = record_.entries[i].copies_end;
      for (size_t c = i > 0 ? record_.entries[i - 1].copies_end : 0; c < end;
           ++c) {
        copies = copies || record_.copies[c].group == GroupId(g);
      }
      if (!copies) return true;
    }
  }
  return false;
}

PrefixHit Planner::FindHit(absl::Span<const TokenId> prompt,
                           absl::string_view frames) const {
  auto tokens = static_cast<uint32_t>(prompt.size());
  for (;;) {
    const PrefixHit hit = FindPrefix(state_, prompt.data(), tokens, frames);
    if (!overwrites_) return hit;
    uint32_t usable = hit.tokens;
    ForEachHitBlock(state_, hit, [&](uint32_t g, uint32_t logical, BlockId id) {
      const GroupGeometry& group = state_.groups[g];
      if (!WritesInto(group.pool, id)) return;
      usable = std::min(usable, logical * group.block_tokens);
    });
    if (usable == hit.tokens) return hit;
    // At most the whole chunks before that block.
    const uint32_t chunk_tokens = state_.index->chunk_tokens();
    tokens = usable / chunk_tokens * chunk_tokens + 1;
  }
}

absl::Status Planner::CheckLength(uint64_t tokens, uint64_t reserve) const {
  const uint32_t limit = state_.sequences.max_tokens();
  if (std::max(tokens, reserve) <= limit) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "never fits: sequence would have ", tokens, " tokens (reserve ", reserve,
      "), limit ", limit, " (KvCacheOptions::max_tokens_per_sequence)"));
}

absl::Status Planner::CheckRoom(const PoolCounts& needed,
                                const PoolCounts& alone, bool admission) const {
  const uint32_t watermark =
      admission ? state_.options.watermark_blocks.value() : 0;
  for (size_t pool = 0; pool < needed.size(); ++pool) {
    const uint32_t capacity = state_.pools[pool]->capacity();
    if (uint64_t{alone[pool]} + watermark > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("never fits: sequence alone needs ", alone[pool],
                       " blocks of pool ", pool, ", which has ", capacity,
                       " and keeps ", watermark, " as watermark"));
    }
  }
  for (size_t pool = 0; pool < needed.size(); ++pool) {
    if (int64_t{needed[pool]} + watermark > available_[pool] &&
        (needed[pool] > 0 || admission)) {
      return ShortageError(
          Shortage::kHostBlocks,
          absl::StrCat("not now: need ", needed[pool], " blocks of pool ", pool,
                       ", ", available_[pool], " available, watermark ",
                       watermark));
    }
  }
  return absl::OkStatus();
}

void Planner::CountDevicePages(std::vector<uint32_t>* available) const {
  for (size_t pool = 0; pool < state_.tiers.size(); ++pool) {
    const DeviceTier& tier = *state_.tiers[pool];
    for (uint32_t split = 0; split < tier.splits(); ++split) {
      (*available)[pool * tier.splits() + split] = tier.available(split);
    }
  }
}

absl::Status Planner::TakeDevicePages(const PlanEntry& entry, uint32_t end,
                                      size_t copies) {
  const uint32_t splits = state_.options.device.splits;
  std::vector<uint32_t>& missing = state_.split_missing;
  std::vector<uint32_t>& available = state_.split_available;
  std::fill(missing.begin(), missing.end(), 0);
  for (uint32_t g = 0; g < state_.groups.size(); ++g) {
    const GroupGeometry& group = state_.groups[g];
    const uint32_t first = state_.sequences.extent(entry.slot, g).size;
    for (uint32_t i = first; i < group.BlocksFor(end); ++i) {
      ++missing[group.pool * splits + i % splits];
    }
  }
  for (size_t c = copies; c < record_.copies.size(); ++c) {
    const GroupGeometry& group = state_.groups[record_.copies[c].group.value()];
    const uint32_t logical =
        state_.sequences.at(entry.slot).tokens / group.block_tokens;
    ++missing[group.pool * splits + logical % splits];
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] <= available[i]) continue;
    const DeviceTier& tier = *state_.tiers[i / splits];
    uint32_t alone = 0;
    for (uint32_t g = 0; g < state_.groups.size(); ++g) {
      const GroupGeometry& group = state_.groups[g];
      if (group.pool != i / splits) continue;
      group.ForEachHeldRun(state_.sequences.extent(entry.slot, g).first,
                           group.BlocksFor(end), [&](uint32_t a, uint32_t b) {
                             for (; a < b; ++a)
                               alone += a % splits == i % splits;
                           });
    }
    if (alone > tier.pages_per_split()) {
      return absl::OutOfRangeError(absl::StrCat(
          "never fits on the device: sequence alone needs ", alone,
          " pages of split ", i % splits, " of pool ", i / splits,
          ", which has ", tier.pages_per_split(), "; swap it out"));
    }
    return ShortageError(
        Shortage::kDevicePages,
        absl::StrCat("not now: need ", missing[i], " device pages of split ",
                     i % splits, " of pool ", i / splits, ", ", available[i],
                     " available (",
                     tier.dirty(static_cast<uint32_t>(i % splits)),
                     " more once written back)"));
  }
  for (size_t i = 0; i < missing.size(); ++i) available[i] -= missing[i];
  return absl::OkStatus();
}

BlockTableExtent Planner::Extent(const PlannedSequence& planned,
                                 const PlanEntry& entry, uint32_t g) const {
  if (planned.kind == StepRequest::Kind::kExtend) {
    return state_.sequences.extent(entry.slot, g);
  }
  const GroupGeometry& group = state_.groups[g];
  const uint32_t cached = planned.cached_tokens.value();
  return {group.FirstNeeded(cached), cached / group.block_tokens};
}

absl::Status Planner::AddBlocks(const PlannedSequence& planned,
                                const PlanEntry& entry, bool admission) {
  PoolCounts needed(state_.pools.size(), 0);
  PoolCounts alone(state_.pools.size(), 0);
  const uint32_t first_new = planned.first_new.value();
  const uint32_t end =
      std::max(planned.Context().value(), entry.reserve_tokens);
  // A prompt that is prefilled in chunks must fit as a whole where nothing of
  // it is ever released.
  const uint32_t whole = std::max(end, entry.prompt_tokens);
  for (uint32_t g = 0; g < state_.groups.size(); ++g) {
    const GroupGeometry& group = state_.groups[g];
    const BlockTableExtent extent = Extent(planned, entry, g);
    const uint32_t blocks = std::max(group.BlocksFor(end), extent.size);
    needed[group.pool] += blocks - extent.size;
    alone[group.pool] += group.HeldBlocks(
        extent.first, group.window == 0
                          ? std::max(group.BlocksFor(whole), extent.size)
                          : blocks);
  }
  // Copies of shared partial blocks, in request order: the last owner that
  // grows finds itself alone and writes in place.
  const size_t old_copies = record_.copies.size();
  if (!admission) {
    for (uint32_t g = 0; g < state_.groups.size(); ++g) {
      const GroupGeometry& group = state_.groups[g];
      const uint32_t filled = first_new % group.block_tokens;
      if (filled == 0) continue;
      BlockPool& pool = state_.PoolOf(group);
      const BlockId tail = state_.sequences.blocks(
          entry.slot, group)[first_new / group.block_tokens];
      if (pool.meta(tail).refs <= 1) {
        overwrites_ = overwrites_ || pool.shareable(tail);
        continue;
      }
      record_.copies.push_back({static_cast<uint32_t>(record_.sequences.size()),
                                GroupId(g), tail, kNoBlock, filled});
      ++needed[group.pool];
    }
  }
  absl::Status room = CheckRoom(needed, alone, admission);
  if (room.ok() && !admission && IsOnDevice(state_.sequences.at(entry.slot))) {
    room = TakeDevicePages(entry, end, old_copies);
  }
  if (!room.ok()) {
    record_.copies.resize_down(old_copies);
    return room;
  }

  for (size_t i = old_copies; i < record_.copies.size(); ++i) {
    const BlockCopy& copy = record_.copies[i];
    state_.PoolOf(state_.groups[copy.group.value()])
        .CountRefAhead(copy.source, -1);
  }
  for (size_t pool = 0; pool < needed.size(); ++pool) {
    available_[pool] -= needed[pool];
  }
  for (uint32_t g = 0; g < state_.groups.size(); ++g) {
    const GroupGeometry& group = state_.groups[g];
    for (uint32_t logical = Extent(planned, entry, g).size;
         logical < group.BlocksFor(end); ++logical) {
      record_.new_blocks.push_back(
          {static_cast<uint32_t>(record_.sequences.size()), GroupId(g), logical,
           kNoBlock});
    }
  }
  record_.sequences.push_back(planned);
  record_.entries.push_back(entry);
  PlanEntry& added = record_.entries[record_.entries.size() - 1];
  added.new_blocks_end = static_cast<uint32_t>(record_.new_blocks.size());
  added.copies_end = static_cast<uint32_t>(record_.copies.size());
  return absl::OkStatus();
}

absl::Status Planner::Add(const StepRequest& request, uint32_t index) {
  return request.kind == StepRequest::Kind::kAdmit ? AddAdmit(request, index)
                                                   : AddExtend(request, index);
}

absl::Status Planner::AddExtend(const StepRequest& request, uint32_t index) {
  const uint32_t slot = state_.sequences.Find(request.id);
  if (slot == SequenceTable::kNone) {
    return absl::NotFoundError(
        absl::StrCat("request ", index, ": no sequence ", request.id.value()));
  }
  Sequence& sequence = state_.sequences.at(slot);
  if (sequence.plan_ticket == record_.ticket) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", index, ": sequence ", request.id.value(),
                     " appears twice in one step"));
  }
  const uint64_t rows =
      uint64_t{request.new_tokens.value()} + request.lookahead.value();
  if (rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", index, ": extends by 0 tokens"));
  }
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength(sequence.tokens + rows, request.reserve_tokens.value()));
  const uint32_t tokens = sequence.tokens + request.new_tokens.value();
  const uint64_t known = uint64_t{sequence.known} + request.tokens.size();
  if (!request.tokens.empty() && known > tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", index, ": ", request.tokens.size(),
                     " values for positions from ", sequence.known,
                     " on, but the step ends at ", tokens));
  }

  PAGED_KV_RETURN_IF_ERROR(
      CheckReady(&state_, slot, sequence.tokens,
                 sequence.tokens + static_cast<uint32_t>(rows)));

  PlannedSequence planned;
  planned.id = request.id;
  planned.kind = StepRequest::Kind::kExtend;
  planned.request = index;
  planned.first_new = TokenPos(sequence.tokens);
  planned.new_tokens = request.new_tokens;
  planned.lookahead = request.lookahead;
  PlanEntry entry{};
  entry.slot = slot;
  entry.reserve_tokens = request.reserve_tokens.value();
  entry.known_after = static_cast<uint32_t>(known);
  PAGED_KV_RETURN_IF_ERROR(AddBlocks(planned, entry, /*admission=*/false));

  // Values behind `known` are nobody's until the plan is committed.
  if (!request.tokens.empty()) {
    std::memcpy(state_.sequences.tokens(slot) + sequence.known,
                request.tokens.data(), request.tokens.size() * sizeof(TokenId));
  }
  sequence.plan_ticket = record_.ticket;
  return absl::OkStatus();
}

absl::Status Planner::AddAdmit(const StepRequest& request, uint32_t index) {
  const size_t prompt_tokens = request.tokens.size();
  if (prompt_tokens == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", index, ": empty prompt"));
  }
  if (request.priority >= kPriorities) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", index, ": priority ", request.priority,
                     ", must be below ", kPriorities));
  }
  PAGED_KV_RETURN_IF_ERROR(
      CheckLength(uint64_t{prompt_tokens} + request.lookahead.value(),
                  request.reserve_tokens.value()));
  PAGED_KV_RETURN_IF_ERROR(CanonicalExtras(
      state_, request.extras, prompt_tokens, &state_.extras_scratch));
  if (admissions_ == state_.sequences.free_slots()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not now: ", state_.sequences.living(), " sequences and ", admissions_,
        " admissions in this step, limit ", state_.sequences.max_sequences(),
        " (KvCacheOptions::max_sequences)"));
  }

  PlanEntry entry{};
  entry.slot = state_.sequences.NextSlot(admissions_);
  entry.reserve_tokens = request.reserve_tokens.value();
  entry.prompt_tokens = static_cast<uint32_t>(prompt_tokens);
  entry.known_after = entry.prompt_tokens;
  entry.extra_bytes = static_cast<uint32_t>(state_.extras_scratch.size());
  entry.priority = static_cast<uint8_t>(request.priority);
  entry.share = request.share && state_.options.prefix_caching;
  PrefixHit hit;
  if (entry.share) {
    hit = FindHit(request.tokens, state_.extras_scratch);
  }
  entry.cursor = hit.cursor;

  PlannedSequence planned;
  planned.id = state_.sequences.NextId(entry.slot);
  planned.kind = StepRequest::Kind::kAdmit;
  planned.request = index;
  planned.cached_tokens = TokenCount(hit.tokens);
  planned.first_new = TokenPos(hit.tokens);
  const uint32_t left = entry.prompt_tokens - hit.tokens;
  const uint32_t chunk = request.new_tokens.value();
  planned.new_tokens = TokenCount(chunk == 0 ? left : std::min(chunk, left));
  planned.lookahead = request.lookahead;

  CountHits(hit, 1);
  if (absl::Status status = AddBlocks(planned, entry, /*admission=*/true);
      !status.ok()) {
    CountHits(hit, -1);
    return status;
  }
  ++admissions_;
  // The slot is free: its arrays are scratch until the plan is committed.
  std::memcpy(state_.sequences.tokens(entry.slot), request.tokens.data(),
              prompt_tokens * sizeof(TokenId));
  std::copy_n(state_.extras_scratch.data(), entry.extra_bytes,
              state_.sequences.extras(entry.slot));
  return absl::OkStatus();
}

void Planner::ChooseBlocks() {
  for (size_t p = 0; p < state_.pools.size(); ++p) {
    const BlockPool& pool = *state_.pools[p];
    BlockId free = pool.FirstFree();
    BlockId victim = kNoBlock;
    bool evicting = false;
    // Following the list of victims waits for memory; meanwhile, what their
    // eviction will touch can come.
    PrefixIndex::EvictionTrail trail;
    const auto next = [&] {
      if (free != kNoBlock) {
        const BlockId taken = free;
        free = pool.NextFree(free);
        return taken;
      }
      do {
        victim = evicting ? pool.policy().Next(victim) : pool.policy().First();
        evicting = true;
        PAGED_KV_CHECK(victim != kNoBlock);
      } while (pool.meta(victim).refs > 0 ||  // a hit of this plan
               IsHeldBack(state_, pool, victim));
      state_.index->PrefetchEviction(pool.meta(victim).node, &trail);
      return victim;
    };
    const auto in_pool = [&](GroupId group) {
      return state_.groups[group.value()].pool == p;
    };
    for (size_t i = 0; i < record_.new_blocks.size(); ++i) {
      NewBlock& block = record_.new_blocks[i];
      if (in_pool(block.group)) block.block = next();
    }
    for (size_t i = 0; i < record_.copies.size(); ++i) {
      BlockCopy& copy = record_.copies[i];
      if (in_pool(copy.group)) copy.target = next();
    }
  }
}

}  // namespace

absl::Status PlanStep(CacheState* state, absl::Span<const StepRequest> requests,
                      absl::Span<absl::Status> outcomes, PlanRecord* record) {
  record->Clear();
  const uint32_t in_flight = static_cast<uint32_t>(state->steps_in_flight());
  if (in_flight >= state->options.max_steps_in_flight) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not now: ", in_flight, " steps in flight, limit ",
        state->options.max_steps_in_flight,
        " (KvCacheOptions::max_steps_in_flight); retire one first"));
  }
  if (requests.empty())
    return absl::InvalidArgumentError("step without requests");
  Planner planner(state, record);
  for (uint32_t i = 0; i < requests.size(); ++i) {
    absl::Status status = planner.Add(requests[i], i);
    if (!outcomes.empty()) {
      outcomes[i] = std::move(status);
    } else if (!status.ok()) {
      return status;
    }
  }
  planner.ChooseBlocks();
  return absl::OkStatus();
}

}  // namespace paged_kv::internal
