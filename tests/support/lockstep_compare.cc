// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is compared between a manager and the model.

#include <algorithm>

#include "tests/support/lockstep_cache.h"

namespace paged_kv::testing {
namespace {

// Calls f(name, a's number, b's number) for every number of two snapshots.
template <typename F>
void ForEachNumber(const CacheStats& a, const CacheStats& b, F f) {
  f("sequences", a.sequences, b.sequences);
  f("pins", a.pins, b.pins);
  f("steps_in_flight", a.steps_in_flight, b.steps_in_flight);
  f("steps_committed", a.steps_committed, b.steps_committed);
  f("steps_retired", a.steps_retired, b.steps_retired);
  f("sequences_admitted", a.sequences_admitted, b.sequences_admitted);
  f("prompt_tokens", a.prompt_tokens, b.prompt_tokens);
  f("hit_tokens", a.hit_tokens, b.hit_tokens);
  f("blocks_taken", a.blocks_taken, b.blocks_taken);
  f("blocks_evicted", a.blocks_evicted, b.blocks_evicted);
  f("blocks_copied", a.blocks_copied, b.blocks_copied);
  f("unshared_chunks", a.unshared_chunks, b.unshared_chunks);
  f("events_dropped", a.events_dropped, b.events_dropped);
}
template <typename F>
void ForEachNumber(const PoolStats& a, const PoolStats& b, F f) {
  f("capacity", a.capacity.value(), b.capacity.value());
  f("held", a.held.value(), b.held.value());
  f("cached", a.cached.value(), b.cached.value());
  f("quarantined", a.quarantined.value(), b.quarantined.value());
  f("free", a.free.value(), b.free.value());
  f("live slots", a.slots.live, b.slots.live);
  f("tail slots", a.slots.tail, b.slots.tail);
  f("lookahead slots", a.slots.lookahead, b.slots.lookahead);
  f("reserved slots", a.slots.reserved, b.slots.reserved);
  f("cached slots", a.slots.cached, b.slots.cached);
  f("duplicate slots", a.slots.duplicate, b.slots.duplicate);
  f("quarantined slots", a.slots.quarantined, b.slots.quarantined);
  f("free slots", a.slots.free, b.slots.free);
}

bool SamePart(const PlannedSequence& got, const PlannedSequence& expected) {
  const bool same_id =
      expected.kind == StepRequest::Kind::kAdmit || got.id == expected.id;
  return same_id && got.kind == expected.kind &&
         got.request == expected.request &&
         got.cached_tokens == expected.cached_tokens &&
         got.first_new == expected.first_new &&
         got.new_tokens == expected.new_tokens &&
         got.lookahead == expected.lookahead;
}

}  // namespace

void LockstepCache::CompareStats() {
  const CacheStats got = manager_->Stats();
  const CacheStats expected = model_.Stats();
  const auto compare = [this](const char* name, uint64_t a, uint64_t b) {
    if (a != b) Violate(name, " is ", a, ", expected ", b);
  };
  ForEachNumber(got, expected, compare);
  if (got.pools.size() != expected.pools.size()) {
    Violate(got.pools.size(), " pools, expected ", expected.pools.size());
    return;
  }
  for (size_t p = 0; p < got.pools.size() && ok(); ++p) {
    ForEachNumber(got.pools[p], expected.pools[p],
                  [&](const char* name, uint64_t a, uint64_t b) {
                    if (a == b) return;
                    Violate("pool ", p, ": ", name, " is ", a, ", expected ",
                            b);
                  });
    const PoolStats& pool = got.pools[p];
    if (pool.slots.Total() !=
        uint64_t{pool.capacity.value()} *
            model_.pool(static_cast<uint32_t>(p)).block_tokens()) {
      Violate("pool ", p, ": slot states add up to ", pool.slots.Total());
    }
  }
}

void LockstepCache::CompareSequence(SequenceId id) {
  if (!ok()) return;
  const ReferenceSequence* expected = model_.Find(id);
  const absl::StatusOr<SequenceInfo> info = manager_->Describe(id);
  if (expected == nullptr) {
    if (info.status().code() != absl::StatusCode::kNotFound) {
      Violate("sequence ", id.value(), " should not be known");
    }
    return;
  }
  if (!info.ok()) {
    Violate("sequence ", id.value(), ": ", info.status().ToString());
    return;
  }
  if (info->tokens.value() != expected->tokens ||
      info->written.value() != expected->written ||
      info->known.value() != expected->known.size() ||
      info->lookahead.value() != expected->lookahead ||
      info->cached_tokens.value() != expected->cached) {
    Violate("sequence ", id.value(), " has ", info->tokens.value(), " tokens, ",
            info->written.value(), " written, ", info->known.value(),
            " known, ", info->lookahead.value(), " ahead, ",
            info->cached_tokens.value(), " cached; expected ", expected->tokens,
            ", ", expected->written, ", ", expected->known.size(), ", ",
            expected->lookahead, ", ", expected->cached);
    return;
  }
  const auto tokens = manager_->Tokens(id);
  if (!tokens.ok() || *tokens != absl::MakeConstSpan(expected->known)) {
    Violate("sequence ", id.value(), " has other tokens");
    return;
  }
  for (uint32_t g = 0; g < model_.groups().size(); ++g) {
    const auto table = manager_->BlockTable(id, GroupId(g));
    const std::vector<uint32_t>& blocks = expected->tables[g].blocks;
    const auto same = [](BlockId got, uint32_t block) {
      return got.value() == block;
    };
    if (!table.ok() || !std::equal(table->begin(), table->end(), blocks.begin(),
                                   blocks.end(), same)) {
      Violate("sequence ", id.value(), " has another table in group ", g);
      return;
    }
  }
}

void LockstepCache::CompareView(const StepView& view) {
  const auto same_block = [](const NewBlock& got, const NewBlock& expected) {
    return got.sequence == expected.sequence && got.group == expected.group &&
           got.logical == expected.logical;
  };
  const auto same_copy = [](const BlockCopy& got, const BlockCopy& expected) {
    return got.sequence == expected.sequence && got.group == expected.group &&
           got.source == expected.source &&
           got.filled_tokens == expected.filled_tokens;
  };
  const auto compare = [&](const char* what, const auto& got,
                           const auto& expected, auto same) {
    if (!std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                    same)) {
      Violate("plan has other ", what, " (", got.size(), ", expected ",
              expected.size(), ")");
    }
  };
  compare("sequences", view.sequences, model_plan_.sequences, SamePart);
  compare("new blocks", view.new_blocks, model_plan_.new_blocks, same_block);
  compare("copies", view.copies, model_plan_.copies, same_copy);
  if (!ok()) return;
  if (std::string error = model_.CheckChoice(model_plan_, view);
      !error.empty()) {
    Violate(error);
  }
}

void LockstepCache::ComparePlan(bool fitting) {
  CompareView(plan_.view());
  if (!fitting) return;
  for (size_t i = 0; i < outcomes_.size(); ++i) {
    if (outcomes_[i].code() != model_plan_.outcomes[i]) {
      Violate("request ", i, ": ", outcomes_[i].ToString(), ", expected ",
              absl::StatusCodeToString(model_plan_.outcomes[i]));
    }
  }
}

// An id names its slot in the lower half, and never comes again.
void LockstepCache::CheckNewId(SequenceId id) {
  const uint64_t slot = id.value() & 0xFFFFFFFF;
  const auto generation = static_cast<uint32_t>(id.value() >> 32);
  if (slot >= generations_.size() || generation <= generations_[slot]) {
    Violate("new id ", id.value(), " was used before, or names no slot");
    return;
  }
  generations_[slot] = generation;
}

void LockstepCache::ComparePools() {
  for (uint32_t g = 0; g < model_.groups().size() && ok(); ++g) {
    const ReferencePool& pool = model_.pool(model_.groups()[g].pool);
    const GroupId group(g);
    if (manager_->PoolBlocks(group).value() != pool.capacity() ||
        manager_->AvailableBlocks(group).value() != pool.Available()) {
      Violate("pool of group ", g, ": ",
              manager_->AvailableBlocks(group).value(), " of ",
              manager_->PoolBlocks(group).value(), " blocks available");
    }
    for (uint32_t block = 0; block < pool.capacity(); ++block) {
      const uint32_t got = manager_->RefCount(group, BlockId(block));
      if (got == pool[block].refs) continue;
      Violate("block ", block, " has ", got, " references, expected ",
              pool[block].refs);
    }
    if (manager_->RefCount(group, BlockId(pool.capacity())) != 0) {
      Violate("a block behind the pool has references");
    }
  }
}

void LockstepCache::CheckAll() {
  if (!ok()) return;
  if (const absl::Status status = manager_->CheckInvariants(); !status.ok()) {
    Violate(status.ToString());
    return;
  }
  if (std::string error = model_.Recount(); !error.empty()) {
    Violate(error);
    return;
  }
  ComparePools();
  std::vector<SequenceId> got = manager_->Sequences();
  std::vector<SequenceId> expected = model_.living();
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  if (got != expected) Violate("other sequences live");
  for (SequenceId id : expected) CompareSequence(id);
}

absl::StatusCode LockstepCache::ExportAgain(StepId step, GroupId group) {
  Begin();
  const ReferenceStep* flying = model_.FindStep(step);
  absl::StatusCode expected = absl::StatusCode::kOk;
  if (group.value() >= model_.groups().size()) {
    expected = absl::StatusCode::kInvalidArgument;
  } else if (flying == nullptr) {
    expected = absl::StatusCode::kNotFound;
  } else if (!model_.TablesUnchanged(*flying)) {
    expected = absl::StatusCode::kFailedPrecondition;
  }
  const absl::StatusCode got = manager_->TableSize(step, group).status().code();
  const absl::StatusCode slots =
      manager_->ExportSlotMapping(step, group, {}).code();
  // A step without sequences has no slots; every other one has too many for
  // an empty array.
  const bool empty = flying != nullptr && flying->parts.empty();
  if (slots != expected && !(expected == absl::StatusCode::kOk && !empty &&
                             slots == absl::StatusCode::kInvalidArgument)) {
    Violate("ExportSlotMapping gave ", absl::StatusCodeToString(slots));
  }
  return End("TableSize of a step", got, expected);
}

absl::StatusCode LockstepCache::ExportSequences(
    absl::Span<const SequenceId> ids, GroupId group) {
  Begin();
  const bool known = std::all_of(ids.begin(), ids.end(), [this](SequenceId id) {
    return model_.Find(id) != nullptr;
  });
  absl::StatusCode expected = absl::StatusCode::kOk;
  if (group.value() >= model_.groups().size()) {
    expected = absl::StatusCode::kInvalidArgument;
  } else if (!known) {
    expected = absl::StatusCode::kNotFound;
  }
  const absl::StatusOr<PageTableSize> size = manager_->TableSize(ids, group);
  if (!size.ok() || expected != absl::StatusCode::kOk) {
    return End("TableSize of sequences", size.status().code(), expected);
  }
  std::vector<int32_t> indptr(ids.size() + 1), pages(size->pages),
      last(ids.size()), first(ids.size());
  const absl::StatusOr<PageTable> table =
      manager_->ExportPageTable(ids, group,
                                {absl::MakeSpan(indptr), absl::MakeSpan(pages),
                                 absl::MakeSpan(last), absl::MakeSpan(first)});
  const uint32_t tokens_per_block = model_.groups()[group.value()].block_tokens;
  std::vector<int32_t> expected_pages;
  for (size_t i = 0; i < ids.size(); ++i) {
    const ReferenceSequence& sequence = *model_.Find(ids[i]);
    const uint32_t end = sequence.tokens + sequence.lookahead;
    for (uint32_t b = 0; b * tokens_per_block < end; ++b) {
      const uint32_t block = sequence.tables[group.value()].blocks[b];
      if (block == kNoReferenceBlock) continue;
      expected_pages.push_back(static_cast<int32_t>(block));
    }
    if (table.ok() && table->SequenceTokens(i) != end) {
      Violate("sequence ", ids[i].value(), " of ", end,
              " tokens and drafts is exported with ", table->SequenceTokens(i));
    }
  }
  if (table.ok() && pages != expected_pages) {
    Violate("the exported pages of sequences are not their blocks");
  }
  return End("ExportPageTable of sequences", table.status().code(), expected);
}

}  // namespace paged_kv::testing
