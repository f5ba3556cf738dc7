// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/sequence_edit.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "paged_kv/block_lifecycle.h"
#include "paged_kv/check.h"
#include "paged_kv/residency.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {
namespace {

// Releases the sequence's blocks from logical block `keep` on, last first, so
// that a prefix always outlives what follows it.
void ReleaseFrom(CacheState* state, uint32_t slot, uint32_t g, uint32_t keep) {
  const GroupGeometry& group = state->groups[g];
  BlockPool& pool = state->PoolOf(group);
  BlockId* table = state->sequences.blocks(slot, group);
  BlockTableExtent& extent = state->sequences.extent(slot, g);
  const Sequence& sequence = state->sequences.at(slot);
  while (extent.size > keep) {
    const BlockId block = table[--extent.size];
    if (block == kNoBlock) continue;  // released by a window
    table[extent.size] = kNoBlock;
    if (IsSeated(sequence, group, extent.size)) Unseat(state, pool, block);
    ReleaseBlock(state, &pool, block, sequence.priority);
  }
}

}  // namespace

void HoldPrefix(CacheState* state, uint32_t slot, const PrefixHit& hit) {
  Sequence& sequence = state->sequences.at(slot);
  sequence.tokens = hit.tokens;
  sequence.written = hit.tokens;
  sequence.known = hit.tokens;
  sequence.cached = hit.tokens;
  sequence.cursor = hit.cursor;
  sequence.indexed_chunks = hit.tokens / state->index->chunk_tokens();
  state->index->Pin(hit.cursor.node);
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    BlockId* table = state->sequences.blocks(slot, group);
    const uint32_t blocks = hit.tokens / group.block_tokens;
    const uint32_t first = group.FirstNeeded(hit.tokens);
    std::fill(table + std::min(group.sink_blocks, first), table + first,
              kNoBlock);
    state->sequences.extent(slot, g) = {first, blocks};
  }
  ForEachHitBlock(*state, hit, [&](uint32_t g, uint32_t logical, BlockId id) {
    const GroupGeometry& group = state->groups[g];
    BlockPool& pool = state->PoolOf(group);
    if (pool.state(id) == BlockState::kCached && IsHeldBack(*state, pool, id)) {
      pool.EndHoldBack();  // held, like others with a transfer in flight
    }
    pool.AddRef(id);
    pool.MarkHit(id);
    state->sequences.blocks(slot, group)[logical] = id;
  });
}

void UpdateFill(CacheState* state, uint32_t slot, uint32_t first,
                uint32_t old_end) {
  const Sequence& sequence = state->sequences.at(slot);
  const uint32_t tokens = sequence.tokens;
  const uint32_t end = tokens + sequence.lookahead;
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    BlockPool& pool = state->PoolOf(group);
    const BlockId* table = state->sequences.blocks(slot, group);
    const uint32_t blocks = std::min(group.BlocksFor(std::max(end, old_end)),
                                     state->sequences.extent(slot, g).size);
    for (uint32_t i = first / group.block_tokens; i < blocks; ++i) {
      if (table[i] == kNoBlock || !pool.writable(table[i])) continue;
      const uint32_t begin = i * group.block_tokens;
      const uint32_t filled =
          std::min(group.block_tokens, std::max(tokens, begin) - begin);
      const uint32_t used =
          std::min(group.block_tokens, std::max(end, begin) - begin);
      pool.SetFill(table[i], filled, used - filled);
    }
  }
}

absl::Status SetTokenValues(CacheState* state, uint32_t slot, uint32_t first,
                            absl::Span<const TokenId> tokens) {
  Sequence& sequence = state->sequences.at(slot);
  if (first != sequence.known) {
    return absl::InvalidArgumentError(
        absl::StrCat("token values from position ", first,
                     " on, but the first unknown is ", sequence.known));
  }
  if (tokens.size() > state->sequences.max_tokens() - first) {
    return absl::OutOfRangeError(
        absl::StrCat(tokens.size(), " token values from position ", first,
                     " on, limit ", state->sequences.max_tokens(),
                     " (KvCacheOptions::max_tokens_per_sequence)"));
  }
  if (!tokens.empty()) {
    std::memcpy(state->sequences.tokens(slot) + first, tokens.data(),
                tokens.size() * sizeof(TokenId));
  }
  sequence.known += static_cast<uint32_t>(tokens.size());
  IndexWritten(state, slot);
  return absl::OkStatus();
}

absl::Status AcceptDrafts(CacheState* state, uint32_t slot,
                          absl::Span<const TokenId> tokens) {
  Sequence& sequence = state->sequences.at(slot);
  if (tokens.size() > sequence.lookahead) {
    return absl::InvalidArgumentError(absl::StrCat("accepts ", tokens.size(),
                                                   " drafts, sequence has ",
                                                   sequence.lookahead));
  }
  if (sequence.lookahead > 0 && sequence.last_step > state->retired_step) {
    return absl::FailedPreconditionError(
        absl::StrCat("drafts are not written: step ", sequence.last_step,
                     " is in flight; retire it first"));
  }
  if (sequence.written != sequence.tokens) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tokens before the drafts are not written: ", sequence.written, " of ",
        sequence.tokens, " tokens are; retire their step first"));
  }
  if (sequence.known != sequence.tokens) {
    return absl::FailedPreconditionError(absl::StrCat(
        "values of ", sequence.known, " tokens are known, sequence has ",
        sequence.tokens, "; SetTokens first"));
  }
  const uint32_t old_tokens = sequence.tokens;
  const uint32_t old_end = sequence.tokens + sequence.lookahead;
  if (!tokens.empty()) {
    std::memcpy(state->sequences.tokens(slot) + old_tokens, tokens.data(),
                tokens.size() * sizeof(TokenId));
  }
  sequence.tokens += static_cast<uint32_t>(tokens.size());
  sequence.written = sequence.tokens;
  sequence.known = sequence.tokens;
  sequence.lookahead = 0;
  ++sequence.table_epoch;
  UpdateFill(state, slot, old_tokens, old_end);
  IndexWritten(state, slot);
  return absl::OkStatus();
}

absl::Status TruncateSequence(CacheState* state, uint32_t slot,
                              uint32_t tokens) {
  Sequence& sequence = state->sequences.at(slot);
  if (tokens > sequence.tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "truncate to ", tokens, " tokens, sequence has ", sequence.tokens));
  }
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    const uint32_t first = state->sequences.extent(slot, g).first;
    const uint32_t needed = group.FirstNeeded(tokens);
    // The window has released [sinks, first); kept tokens are in blocks below
    // BlocksFor(tokens), so that behind a cut into the sinks all are there.
    if (std::max(needed, group.sink_blocks) >=
        std::min(first, group.BlocksFor(tokens))) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "truncate to ", tokens, " tokens needs blocks from ", needed,
        " on, but the window of ", group.window, " tokens of group ", g,
        " has released those before ", first));
  }
  RewindIndex(state, slot, tokens);
  // What host memory is going to be written in has no seat.
  if (!IsOnDevice(sequence)) UnseatFrom(state, slot, tokens);
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    ReleaseFrom(state, slot, g, group.BlocksFor(tokens));
    uint32_t& first = state->sequences.extent(slot, g).first;
    first = std::min(first, group.FirstNeeded(tokens));
  }
  // Steps in flight still report what was cut off as written.
  state->sequences.CutWriteEnds(slot, tokens);
  const uint32_t old_end = sequence.tokens + sequence.lookahead;
  sequence.tokens = tokens;
  sequence.written = std::min(sequence.written, tokens);
  sequence.known = std::min(sequence.known, tokens);
  sequence.lookahead = 0;
  ++sequence.table_epoch;
  UpdateFill(state, slot, tokens, old_end);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ForkSequence(CacheState* state, uint32_t parent) {
  SequenceTable& sequences = state->sequences;
  const Sequence& source = sequences.at(parent);
  if (source.written != source.tokens) {
    return absl::FailedPreconditionError(
        absl::StrCat("fork needs the parent's tokens written: ", source.written,
                     " of ", source.tokens, " are; retire the step first"));
  }
  if (source.lookahead > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("fork of a sequence with ", source.lookahead,
                     " open drafts; Accept or Truncate first"));
  }
  if (sequences.free_slots() == 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not now: ", sequences.living(), " sequences, limit ",
        sequences.max_sequences(), " (KvCacheOptions::max_sequences)"));
  }
  const uint32_t slot = sequences.NextSlot(0);
  Sequence& child = sequences.Open(slot, /*is_pin=*/false);
  const uint32_t generation = child.generation;
  child = source;
  child.generation = generation;
  child.table_epoch = 0;
  child.plan_ticket = 0;
  child.last_step = 0;
  state->index->Pin(child.cursor.node);
  std::memcpy(sequences.tokens(slot), sequences.tokens(parent),
              source.known * sizeof(TokenId));
  std::copy_n(sequences.extras(parent), source.extra_bytes,
              sequences.extras(slot));
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    const GroupGeometry& group = state->groups[g];
    BlockPool& pool = state->PoolOf(group);
    const BlockId* from = sequences.blocks(parent, group);
    BlockId* to = sequences.blocks(slot, group);
    const uint32_t blocks = group.BlocksFor(source.tokens);
    sequences.extent(slot, g) = {sequences.extent(parent, g).first, blocks};
    for (uint32_t i = 0; i < blocks; ++i) {
      to[i] = from[i];
      if (from[i] != kNoBlock) pool.AddRef(from[i]);
    }
  }
  SeatFork(state, slot);
  return slot;
}

void CloseSequence(CacheState* state, uint32_t slot) {
  Sequence& sequence = state->sequences.at(slot);
  for (uint32_t g = 0; g < state->groups.size(); ++g) {
    ReleaseFrom(state, slot, g, 0);
  }
  state->index->Unpin(sequence.cursor.node);
  state->sequences.Close(slot);
}

absl::StatusOr<uint32_t> PinPrefix(CacheState* state,
                                   absl::Span<const TokenId> prompt,
                                   KeyExtras extras) {
  PAGED_KV_RETURN_IF_ERROR(
      CanonicalExtras(*state, extras, prompt.size(), &state->extras_scratch));
  if (state->sequences.free_pins() == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not now: ", state->sequences.pins(), " pins, limit ",
                     state->options.max_pins, " (KvCacheOptions::max_pins)"));
  }
  const uint32_t tokens = static_cast<uint32_t>(
      std::min<size_t>(prompt.size(), state->sequences.max_tokens()));
  const PrefixHit hit =
      FindPrefix(*state, prompt.data(), tokens, state->extras_scratch);
  if (hit.tokens == 0) {
    return absl::NotFoundError(
        absl::StrCat("nothing to pin: no block of the prompt of ",
                     prompt.size(), " tokens is cached"));
  }
  const uint32_t slot = state->sequences.NextPinSlot();
  state->sequences.Open(slot, /*is_pin=*/true);
  HoldPrefix(state, slot, hit);
  return slot;
}

}  // namespace paged_kv::internal
