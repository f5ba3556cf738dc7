// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the model says about plans.

#include <algorithm>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/reference_kv_cache.h"

namespace paged_kv::testing {

using absl::StatusCode;
using Counts = absl::InlinedVector<uint32_t, 4>;  // per pool

// Plans one request after the other over an unchanged cache, keeping a list of
// the references that the step would add and drop.
class ReferencePlanner {
 public:
  ReferencePlanner(const ReferenceKvCache* cache, ReferencePlan* plan)
      : cache_(*cache), plan_(*plan), taken_(cache->pools_.size(), 0) {}

  StatusCode Add(const StepRequest& request, uint32_t index) {
    return request.kind == StepRequest::Kind::kAdmit ? Admit(request, index)
                                                     : Extend(request, index);
  }

 private:
  StatusCode Admit(const StepRequest& request, uint32_t index);
  StatusCode Extend(const StepRequest& request, uint32_t index);
  ReferenceKvCache::Hit FindHit(absl::Span<const TokenId> prompt,
                                const ReferenceExtras& extras) const;
  StatusCode AddBlocks(const PlannedSequence& planned,
                       ReferencePlan::Entry entry, uint32_t prompt_tokens,
                       const ReferenceSequence* sequence);
  StatusCode CheckRoom(const Counts& needed, const Counts& alone,
                       const std::vector<std::pair<uint32_t, uint32_t>>& hits,
                       bool admission) const;

  // References to a block once the requests so far are carried out.
  int64_t Refs(uint32_t pool, uint32_t block) const {
    int64_t refs = cache_.pools_[pool][block].refs;
    for (const auto& hit : plan_.hits) {
      if (hit == std::make_pair(pool, block)) ++refs;
    }
    for (const BlockCopy& copy : plan_.copies) {
      if (cache_.groups_[copy.group.value()].pool == pool &&
          copy.source.value() == block) {
        --refs;
      }
    }
    return refs;
  }
  bool IsHit(const std::pair<uint32_t, uint32_t>& block) const {
    return std::find(plan_.hits.begin(), plan_.hits.end(), block) !=
           plan_.hits.end();
  }

  const ReferenceKvCache& cache_;
  ReferencePlan& plan_;
  Counts taken_;  // blocks that the requests so far take
  // Tails that they write into in place, (pool, block).
  std::vector<std::pair<uint32_t, uint32_t>> overwritten_;
  uint32_t admissions_ = 0;
};

StatusCode ReferencePlanner::Extend(const StepRequest& request,
                                    uint32_t index) {
  const ReferenceSequence* sequence = cache_.Find(request.id);
  if (sequence == nullptr) return StatusCode::kNotFound;
  for (const PlannedSequence& other : plan_.sequences) {
    if (other.kind == StepRequest::Kind::kExtend && other.id == request.id) {
      return StatusCode::kInvalidArgument;
    }
  }
  const uint64_t rows =
      uint64_t{request.new_tokens.value()} + request.lookahead.value();
  if (rows == 0) return StatusCode::kInvalidArgument;
  const uint32_t limit = cache_.options_.max_tokens_per_sequence;
  if (sequence->tokens + rows > limit ||
      request.reserve_tokens.value() > limit) {
    return StatusCode::kOutOfRange;
  }
  if (!request.tokens.empty() &&
      sequence->known.size() + request.tokens.size() >
          sequence->tokens + request.new_tokens.value()) {
    return StatusCode::kInvalidArgument;
  }
  PlannedSequence planned;
  planned.id = request.id;
  planned.kind = StepRequest::Kind::kExtend;
  planned.request = index;
  planned.first_new = TokenPos(sequence->tokens);
  planned.new_tokens = request.new_tokens;
  planned.lookahead = request.lookahead;
  ReferencePlan::Entry entry;
  entry.reserve = request.reserve_tokens.value();
  return AddBlocks(planned, std::move(entry), 0, sequence);
}

// The longest hit without a block that an earlier request of the step writes
// into.
ReferenceKvCache::Hit ReferencePlanner::FindHit(
    absl::Span<const TokenId> prompt, const ReferenceExtras& extras) const {
  for (;;) {
    const ReferenceKvCache::Hit hit = cache_.FindPrefix(prompt, extras);
    uint32_t chunks = hit.tokens / cache_.chunk_tokens_;
    cache_.ForEachHitBlock(hit, [&](uint32_t g, uint32_t logical,
                                    uint32_t block) {
      const ReferenceGroup& group = cache_.groups_[g];
      if (std::find(overwritten_.begin(), overwritten_.end(),
                    std::make_pair(group.pool, block)) == overwritten_.end()) {
        return;
      }
      chunks =
          std::min(chunks, logical * group.block_tokens / cache_.chunk_tokens_);
    });
    if (chunks * cache_.chunk_tokens_ == hit.tokens) return hit;
    prompt = prompt.subspan(0, size_t{chunks} * cache_.chunk_tokens_ + 1);
  }
}

StatusCode ReferencePlanner::Admit(const StepRequest& request, uint32_t index) {
  if (request.tokens.empty()) return StatusCode::kInvalidArgument;
  if (request.priority >= kPriorities) return StatusCode::kInvalidArgument;
  const uint32_t limit = cache_.options_.max_tokens_per_sequence;
  if (request.tokens.size() + request.lookahead.value() > limit ||
      request.reserve_tokens.value() > limit) {
    return StatusCode::kOutOfRange;
  }
  ReferencePlan::Entry entry;
  entry.reserve = request.reserve_tokens.value();
  const StatusCode code =
      cache_.MakeExtras(request.extras, request.tokens.size(), &entry.extras);
  if (code != StatusCode::kOk) return code;
  if (cache_.sequences_.size() + admissions_ >= cache_.options_.max_sequences) {
    return StatusCode::kResourceExhausted;
  }
  ReferenceKvCache::Hit hit{0, cache_.contents_->root()};
  if (request.share) hit = FindHit(request.tokens, entry.extras);
  entry.hit = hit.content;

  const auto prompt = static_cast<uint32_t>(request.tokens.size());
  PlannedSequence planned;
  planned.kind = StepRequest::Kind::kAdmit;
  planned.request = index;
  planned.cached_tokens = TokenCount(hit.tokens);
  planned.first_new = TokenPos(hit.tokens);
  planned.new_tokens = TokenCount(prompt - hit.tokens);
  if (request.new_tokens.value() != 0) {
    planned.new_tokens = std::min(planned.new_tokens, request.new_tokens);
  }
  planned.lookahead = request.lookahead;
  const StatusCode room = AddBlocks(planned, std::move(entry), prompt, nullptr);
  if (room == StatusCode::kOk) ++admissions_;
  return room;
}

// `sequence` is null for an admission.
StatusCode ReferencePlanner::AddBlocks(const PlannedSequence& planned,
                                       ReferencePlan::Entry entry,
                                       uint32_t prompt_tokens,
                                       const ReferenceSequence* sequence) {
  const auto index = static_cast<uint32_t>(plan_.sequences.size());
  const uint32_t first_new = planned.first_new.value();
  const uint32_t end = std::max(planned.Context().value(), entry.reserve);
  Counts needed(cache_.pools_.size(), 0), alone(cache_.pools_.size(), 0);
  std::vector<NewBlock> new_blocks;
  std::vector<BlockCopy> copies;
  std::vector<std::pair<uint32_t, uint32_t>> hits, overwritten;
  for (uint32_t g = 0; g < cache_.groups_.size(); ++g) {
    const ReferenceGroup& group = cache_.groups_[g];
    // What it has, and from which block on it needs them (sinks aside).
    const uint32_t has =
        sequence != nullptr
            ? static_cast<uint32_t>(sequence->tables[g].blocks.size())
            : first_new / group.block_tokens;
    const uint32_t first = sequence != nullptr ? sequence->tables[g].first
                                               : group.FirstNeeded(first_new);
    const uint32_t blocks = std::max(has, group.Blocks(end));
    for (uint32_t logical = has; logical < blocks; ++logical) {
      new_blocks.push_back({index, GroupId(g), logical, kNoBlock});
      ++needed[group.pool];
    }
    const uint32_t whole = group.window == 0
                               ? std::max(blocks, group.Blocks(prompt_tokens))
                               : blocks;
    for (uint32_t logical = 0; logical < whole; ++logical) {
      if (logical < group.sink_blocks || logical >= first) {
        ++alone[group.pool];
      }
    }
    if (sequence == nullptr) continue;
    // A shared partial tail is copied; the last owner writes in place.
    if (const uint32_t filled = first_new % group.block_tokens; filled != 0) {
      const uint32_t tail =
          sequence->tables[g].blocks[first_new / group.block_tokens];
      if (Refs(group.pool, tail) > 1) {
        copies.push_back({index, GroupId(g), BlockId(tail), kNoBlock, filled});
        ++needed[group.pool];
      } else {
        overwritten.emplace_back(group.pool, tail);
      }
    }
  }
  if (sequence == nullptr) {
    cache_.ForEachHitBlock({first_new, entry.hit},
                           [&](uint32_t g, uint32_t, uint32_t block) {
                             hits.emplace_back(cache_.groups_[g].pool, block);
                           });
  }
  const StatusCode room = CheckRoom(needed, alone, hits, sequence == nullptr);
  if (room != StatusCode::kOk) return room;

  for (size_t pool = 0; pool < needed.size(); ++pool) {
    taken_[pool] += needed[pool];
  }
  plan_.hits.insert(plan_.hits.end(), hits.begin(), hits.end());
  plan_.new_blocks.insert(plan_.new_blocks.end(), new_blocks.begin(),
                          new_blocks.end());
  plan_.copies.insert(plan_.copies.end(), copies.begin(), copies.end());
  overwritten_.insert(overwritten_.end(), overwritten.begin(),
                      overwritten.end());
  plan_.sequences.push_back(planned);
  plan_.entries.push_back(std::move(entry));
  return StatusCode::kOk;
}

StatusCode ReferencePlanner::CheckRoom(
    const Counts& needed, const Counts& alone,
    const std::vector<std::pair<uint32_t, uint32_t>>& hits,
    bool admission) const {
  const uint32_t watermark =
      admission ? cache_.options_.watermark_blocks.value() : 0;
  for (uint32_t pool = 0; pool < needed.size(); ++pool) {
    if (uint64_t{alone[pool]} + watermark > cache_.pools_[pool].capacity()) {
      return StatusCode::kOutOfRange;
    }
  }
  for (uint32_t pool = 0; pool < needed.size(); ++pool) {
    if (needed[pool] == 0 && !admission) continue;
    // Hits wait on the eviction list themselves: each can be hit or evicted.
    uint64_t hit_cached = 0;
    const auto count = [&](const std::pair<uint32_t, uint32_t>& hit) {
      const ReferenceState state = cache_.pools_[hit.first][hit.second].state;
      if (hit.first == pool && state == ReferenceState::kCached) ++hit_cached;
    };
    for (size_t i = 0; i < plan_.hits.size(); ++i) {
      // Requests of one plan may hit the same block; it counts once.
      if (std::find(plan_.hits.begin(), plan_.hits.begin() + i,
                    plan_.hits[i]) == plan_.hits.begin() + i) {
        count(plan_.hits[i]);
      }
    }
    for (const auto& hit : hits) {
      if (!IsHit(hit)) count(hit);
    }
    const uint64_t available = cache_.pools_[pool].Available();
    if (hit_cached + taken_[pool] + needed[pool] + watermark > available) {
      return StatusCode::kResourceExhausted;
    }
  }
  return StatusCode::kOk;
}

void ReferenceKvCache::Plan(absl::Span<const StepRequest> requests,
                            bool fitting, ReferencePlan* plan) {
  plan->code = StatusCode::kOk;
  plan->outcomes.clear();
  plan->sequences.clear();
  plan->entries.clear();
  plan->new_blocks.clear();
  plan->copies.clear();
  plan->hits.clear();
  if (in_flight_.size() >= options_.max_steps_in_flight) {
    plan->code = StatusCode::kResourceExhausted;
    return;
  }
  if (requests.empty()) {
    plan->code = StatusCode::kInvalidArgument;
    return;
  }
  ReferencePlanner planner(this, plan);
  for (uint32_t i = 0; i < requests.size(); ++i) {
    const StatusCode code = planner.Add(requests[i], i);
    plan->outcomes.push_back(code);
    if (code == StatusCode::kOk || fitting) continue;
    plan->code = code;
    return;
  }
}

namespace {

// Follows the order in which one pool gives blocks for a plan.
class ChoiceChecker {
 public:
  ChoiceChecker(const ReferencePool& pool, uint32_t index,
                const ReferencePlan& plan, bool ordered)
      : pool_(pool),
        index_(index),
        plan_(plan),
        ordered_(ordered),
        free_(pool.Count(ReferenceState::kFree)),
        victim_(pool.cached(0).begin()) {}

  // What is wrong with `id` as the next block; empty if nothing is.
  std::string Check(BlockId id) {
    const uint32_t block = id.value();
    if (block >= pool_.capacity()) {
      return absl::StrCat("plan names block ", block, " of ", pool_.capacity());
    }
    if (std::find(taken_.begin(), taken_.end(), block) != taken_.end()) {
      return absl::StrCat("plan gives block ", block, " twice");
    }
    taken_.push_back(block);
    if (free_ > 0) {
      --free_;
      if (pool_[block].state == ReferenceState::kFree) return "";
      return absl::StrCat("plan takes block ", block,
                          ", which is not free, while others are");
    }
    return ordered_ ? CheckVictim(block) : CheckAnyVictim(block);
  }

 private:
  bool IsHit(uint32_t block) const {
    return std::find(plan_.hits.begin(), plan_.hits.end(),
                     std::make_pair(index_, block)) != plan_.hits.end();
  }

  std::string CheckAnyVictim(uint32_t block) const {
    if (pool_[block].state == ReferenceState::kCached && !IsHit(block)) {
      return "";
    }
    return absl::StrCat("plan evicts block ", block,
                        ", which is a hit or not cached");
  }

  std::string CheckVictim(uint32_t block) {
    for (;;) {
      while (victim_ == pool_.cached(priority_).end()) {
        if (++priority_ == kPriorities) return "plan evicts too many blocks";
        victim_ = pool_.cached(priority_).begin();
      }
      const uint32_t expected = *victim_++;
      if (IsHit(expected)) continue;
      if (expected == block) return "";
      return absl::StrCat("plan evicts block ", block, ", next to go is ",
                          expected);
    }
  }

  const ReferencePool& pool_;
  uint32_t index_;
  const ReferencePlan& plan_;
  bool ordered_;
  uint32_t free_;  // free blocks that were not given yet
  uint32_t priority_ = 0;
  std::list<uint32_t>::const_iterator victim_;
  std::vector<uint32_t> taken_;
};

}  // namespace

// A pool gives the blocks of the tables first, then those that copies go to.
std::string ReferenceKvCache::CheckChoice(const ReferencePlan& plan,
                                          const StepView& view) {
  const bool ordered =
      options_.eviction == nullptr || options_.eviction == &MakeLruPolicy;
  for (uint32_t p = 0; p < pools_.size(); ++p) {
    ChoiceChecker checker(pools_[p], p, plan, ordered);
    std::string error;
    for (const NewBlock& block : view.new_blocks) {
      if (groups_[block.group.value()].pool != p) continue;
      if (error = checker.Check(block.block); !error.empty()) return error;
    }
    for (const BlockCopy& copy : view.copies) {
      if (groups_[copy.group.value()].pool != p) continue;
      if (error = checker.Check(copy.target); !error.empty()) return error;
    }
  }
  return "";
}

}  // namespace paged_kv::testing
