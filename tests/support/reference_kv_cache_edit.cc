// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the model says about sequences and pins outside of steps.

#include <algorithm>
#include <utility>

#include "paged_kv/check.h"
#include "tests/support/reference_kv_cache.h"

namespace paged_kv::testing {

using absl::StatusCode;

namespace {

// The lower half of an id names the slot that its sequence lies in.
uint32_t SlotOf(SequenceId id) { return static_cast<uint32_t>(id.value()); }

}  // namespace

ReferenceSequence* ReferenceKvCache::Open(SequenceId id) {
  std::unique_ptr<ReferenceSequence> sequence;
  if (spare_.empty()) {
    sequence = std::make_unique<ReferenceSequence>();
    sequence->tables.resize(groups_.size());
  } else {
    sequence = std::move(spare_.back());
    spare_.pop_back();
  }
  sequence->id = id;
  sequence->last_step = 0;
  ReferenceSequence* opened = sequence.get();
  PAGED_KV_CHECK(sequences_.emplace(id, std::move(sequence)).second);
  living_.push_back(id);
  return opened;
}

// Gives a new sequence, or pin, the blocks of a prefix that was found.
void ReferenceKvCache::HoldPrefix(const Hit& hit, ReferenceSequence* sequence) {
  sequence->tokens = hit.tokens;
  sequence->written = hit.tokens;
  sequence->cached = hit.tokens;
  sequence->lookahead = 0;
  sequence->tip = hit.content;
  sequence->shared_chunks = hit.tokens / chunk_tokens_;
  contents_->Pin(hit.content);
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    sequence->tables[g].first = groups_[g].FirstNeeded(hit.tokens);
    sequence->tables[g].blocks.assign(hit.tokens / groups_[g].block_tokens,
                                      kNoReferenceBlock);
  }
  ForEachHitBlock(hit, [&](uint32_t g, uint32_t logical, uint32_t block) {
    sequence->tables[g].blocks[logical] = block;
    pools_[groups_[g].pool].AddRef(block);
  });
}

void ReferenceKvCache::Close(ReferenceSequence* sequence) {
  for (uint32_t g = 0; g < groups_.size(); ++g) ReleaseFrom(sequence, g, 0);
  contents_->Unpin(sequence->tip);
}

StatusCode ReferenceKvCache::Free(SequenceId id) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return StatusCode::kNotFound;
  Close(it->second.get());
  spare_.push_back(std::move(it->second));
  sequences_.erase(it);
  *std::find(living_.begin(), living_.end(), id) = living_.back();
  living_.pop_back();
  return StatusCode::kOk;
}

// In the order of their slots.
void ReferenceKvCache::FreeAll() {
  std::vector<SequenceId> ids = living_;
  std::sort(ids.begin(), ids.end(),
            [](SequenceId a, SequenceId b) { return SlotOf(a) < SlotOf(b); });
  for (SequenceId id : ids) Free(id);
}

StatusCode ReferenceKvCache::SetTokens(SequenceId id, uint32_t first,
                                       absl::Span<const TokenId> tokens) {
  ReferenceSequence* sequence = Mutable(id);
  if (sequence == nullptr) return StatusCode::kNotFound;
  if (first != sequence->known.size()) return StatusCode::kInvalidArgument;
  if (first + tokens.size() > options_.max_tokens_per_sequence) {
    return StatusCode::kOutOfRange;
  }
  sequence->known.insert(sequence->known.end(), tokens.begin(), tokens.end());
  ShareWritten(sequence);
  return StatusCode::kOk;
}

StatusCode ReferenceKvCache::Accept(SequenceId id,
                                    absl::Span<const TokenId> tokens) {
  ReferenceSequence* sequence = Mutable(id);
  if (sequence == nullptr) return StatusCode::kNotFound;
  if (tokens.size() > sequence->lookahead) return StatusCode::kInvalidArgument;
  // The step that writes the drafts is the last one of the sequence.
  const bool drafts_in_flight =
      sequence->lookahead > 0 &&
      FindStep(StepId(sequence->last_step)) != nullptr;
  if (drafts_in_flight || sequence->written != sequence->tokens ||
      sequence->known.size() != sequence->tokens) {
    return StatusCode::kFailedPrecondition;
  }
  const uint32_t first = sequence->tokens;
  sequence->known.insert(sequence->known.end(), tokens.begin(), tokens.end());
  sequence->tokens = static_cast<uint32_t>(sequence->known.size());
  sequence->written = sequence->tokens;
  sequence->lookahead = 0;
  ++sequence->table_version;
  UpdateFill(sequence, first);
  ShareWritten(sequence);
  return StatusCode::kOk;
}

// Refused if a block that a window has released would be needed again: one
// between the first that a token at position `tokens` attends to and the last
// that keeps a token, sinks aside.
StatusCode ReferenceKvCache::Truncate(SequenceId id, uint32_t tokens) {
  ReferenceSequence* sequence = Mutable(id);
  if (sequence == nullptr) return StatusCode::kNotFound;
  if (tokens > sequence->tokens) return StatusCode::kInvalidArgument;
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    for (uint32_t i = groups_[g].FirstNeeded(tokens);
         i < groups_[g].Blocks(tokens); ++i) {
      if (sequence->tables[g].blocks[i] == kNoReferenceBlock) {
        return StatusCode::kFailedPrecondition;
      }
    }
  }
  const uint32_t chunks = tokens / chunk_tokens_;
  if (sequence->shared_chunks > chunks) {
    ReferenceContent* tip = sequence->tip;
    for (; sequence->shared_chunks > chunks; --sequence->shared_chunks) {
      tip = tip->parent;
    }
    contents_->Pin(tip);
    contents_->Unpin(std::exchange(sequence->tip, tip));
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    ReleaseFrom(sequence, g, groups_[g].Blocks(tokens));
    sequence->tables[g].first =
        std::min(sequence->tables[g].first, groups_[g].FirstNeeded(tokens));
  }
  // Steps in flight still write what was cut off, but nobody's tokens.
  for (ReferenceStep& step : in_flight_) {
    for (ReferenceStep::Part& part : step.parts) {
      if (part.id == id) part.end = std::min(part.end, tokens);
    }
  }
  sequence->tokens = tokens;
  sequence->written = std::min(sequence->written, tokens);
  sequence->known.resize(std::min<size_t>(sequence->known.size(), tokens));
  sequence->lookahead = 0;
  ++sequence->table_version;
  UpdateFill(sequence, tokens);
  return StatusCode::kOk;
}

StatusCode ReferenceKvCache::CanFork(SequenceId parent) const {
  const ReferenceSequence* sequence = Find(parent);
  if (sequence == nullptr) return StatusCode::kNotFound;
  if (sequence->written != sequence->tokens || sequence->lookahead > 0) {
    return StatusCode::kFailedPrecondition;
  }
  return sequences_.size() < options_.max_sequences
             ? StatusCode::kOk
             : StatusCode::kResourceExhausted;
}

// The child shares the blocks that hold tokens, not the parent's reserve.
void ReferenceKvCache::Fork(SequenceId parent, SequenceId child) {
  ReferenceSequence* copy = Open(child);
  const ReferenceSequence& source = *Find(parent);
  *copy = source;
  copy->id = child;
  copy->last_step = 0;
  contents_->Pin(copy->tip);
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    std::vector<uint32_t>& blocks = copy->tables[g].blocks;
    blocks.resize(groups_[g].Blocks(copy->tokens));
    for (uint32_t block : blocks) {
      if (block != kNoReferenceBlock) pools_[groups_[g].pool].AddRef(block);
    }
  }
}

StatusCode ReferenceKvCache::Reset() {
  if (!sequences_.empty() || !pins_.empty() || !in_flight_.empty()) {
    return StatusCode::kFailedPrecondition;
  }
  quiet_ = true;  // one event says it all
  for (uint32_t p = 0; p < pools_.size(); ++p) {
    for (uint32_t priority = 0; priority < kPriorities; ++priority) {
      while (!pools_[p].cached(priority).empty()) {
        const uint32_t block = pools_[p].cached(priority).front();
        DropContent(p, block);
        pools_[p].Uncache(block);
        pools_[p].ToFree(block);
      }
    }
  }
  quiet_ = false;
  Emit(CacheEvent::Kind::kCleared, 0);
  return StatusCode::kOk;
}

// A pin holds what Lookup() finds.
StatusCode ReferenceKvCache::CanPin(absl::Span<const TokenId> prompt,
                                    KeyExtras extras, Hit* hit) {
  const StatusCode code = Lookup(prompt, extras, hit);
  if (code != StatusCode::kOk) return code;
  if (pins_.size() >= options_.max_pins) return StatusCode::kResourceExhausted;
  return hit->tokens == 0 ? StatusCode::kNotFound : StatusCode::kOk;
}

void ReferenceKvCache::Pin(const Hit& hit, PinId id) {
  auto pin = std::make_unique<ReferenceSequence>();
  pin->tables.resize(groups_.size());
  HoldPrefix(hit, pin.get());
  PAGED_KV_CHECK(pins_.emplace(id, std::move(pin)).second);
}

// Like the end of a sequence of the lowest priority.
StatusCode ReferenceKvCache::Unpin(PinId id) {
  const auto it = pins_.find(id);
  if (it == pins_.end()) return StatusCode::kNotFound;
  Close(it->second.get());
  pins_.erase(it);
  return StatusCode::kOk;
}

}  // namespace paged_kv::testing
