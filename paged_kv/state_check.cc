// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/state_check.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "paged_kv/status_macros.h"
#include "paged_kv/tier_check.h"

namespace paged_kv::internal {
namespace {

absl::Status CheckTable(const CacheState& state, uint32_t slot, uint32_t g,
                        std::vector<std::vector<uint32_t>>* refs) {
  const GroupGeometry& group = state.groups[g];
  const BlockPool& pool = state.PoolOf(group);
  const Sequence& sequence = state.sequences.at(slot);
  const BlockTableExtent& extent = state.sequences.extent(slot, g);
  const BlockId* table = state.sequences.blocks(slot, group);
  const uint32_t end = sequence.tokens + sequence.lookahead;
  const auto broken = [&](const auto&... what) {
    return absl::InternalError(
        absl::StrCat("sequence slot ", slot, ", group ", g, ": ", what...));
  };
  if (extent.size < group.BlocksFor(end) || extent.size > group.table_width) {
    return broken(extent.size, " blocks for ", end, " tokens and drafts");
  }
  if (extent.first >
      std::max(group.FirstNeeded(sequence.tokens), group.sink_blocks)) {
    return broken("released blocks up to ", extent.first, " at ",
                  sequence.tokens, " tokens");
  }
  for (uint32_t i = 0; i < extent.size; ++i) {
    const bool released = i >= group.sink_blocks && i < extent.first;
    if (released != (table[i] == kNoBlock)) {
      return broken("logical block ", i, released ? " is not" : " is",
                    " missing");
    }
    if (released) continue;
    if (table[i].value() >= pool.capacity()) {
      return broken("logical block ", i, " is block ", table[i].value(), " of ",
                    pool.capacity());
    }
    ++(*refs)[group.pool][table[i].value()];
    const uint32_t begin = i * group.block_tokens;
    const uint32_t filled =
        std::min(group.block_tokens, std::max(sequence.tokens, begin) - begin);
    const BlockMeta& meta = pool.meta(table[i]);
    if (meta.filled < filled ||
        (pool.writable(table[i]) && meta.filled != filled &&
         !(i + 1 == group.BlocksFor(sequence.tokens)))) {
      return broken("logical block ", i, " has ", meta.filled + 0,
                    " slots filled, the sequence needs ", filled);
    }
    if (meta.ahead > 0 && (meta.refs != 1 || sequence.lookahead == 0)) {
      return broken("logical block ", i, " has ", meta.ahead + 0,
                    " draft slots of nobody");
    }
  }
  return absl::OkStatus();
}

// Walks the sequence's place in the index from its tokens anew.
absl::Status CheckCursor(const CacheState& state, uint32_t slot) {
  const Sequence& sequence = state.sequences.at(slot);
  const PrefixIndex& index = *state.index;
  const uint32_t chunk_tokens = index.chunk_tokens();
  absl::string_view frames = state.sequences.ExtrasOf(slot);
  PrefixCursor cursor;
  for (uint32_t chunk = 0; chunk < sequence.indexed_chunks; ++chunk) {
    const TokenId* tokens =
        state.sequences.tokens(slot) + size_t{chunk} * chunk_tokens;
    const absl::string_view extras =
        CutExtrasBefore((chunk + 1) * chunk_tokens, &frames);
    const uint32_t tag =
        index.ChunkTag(index.TagOf(cursor.node), tokens, extras);
    if (!index.Find(tag, tokens, extras, &cursor)) {
      return absl::InternalError(
          absl::StrCat("sequence slot ", slot, ": chunk ", chunk, " of ",
                       sequence.indexed_chunks, " is not in the index"));
    }
  }
  if (cursor.node != sequence.cursor.node ||
      cursor.serial != sequence.cursor.serial) {
    return absl::InternalError(absl::StrCat(
        "sequence slot ", slot, " is at node ", sequence.cursor.node,
        ", its tokens are at node ", cursor.node));
  }
  return absl::OkStatus();
}

class Fingerprint {
 public:
  Fingerprint() { XXH3_64bits_reset(&hash_); }

  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_integral_v<T>);
    XXH3_64bits_update(&hash_, &value, sizeof(value));
  }
  void Add(const void* data, size_t bytes) {
    XXH3_64bits_update(&hash_, data, bytes);
  }
  uint64_t Value() const { return XXH3_64bits_digest(&hash_); }

 private:
  XXH3_state_t hash_;
};

void AddPool(const BlockPool& pool, Fingerprint* print) {
  for (BlockId id = pool.FirstFree(); id != kNoBlock; id = pool.NextFree(id)) {
    print->Add(id.value());
  }
  const EvictionPolicy& policy = pool.policy();
  for (BlockId id = policy.First(); id != kNoBlock; id = policy.Next(id)) {
    print->Add(id.value());
  }
  for (uint32_t i = 0; i < pool.capacity(); ++i) {
    const BlockMeta& meta = pool.meta(BlockId(i));
    print->Add(meta.refs);
    print->Add<uint32_t>(meta.filled);
    print->Add<uint32_t>(meta.ahead);
    print->Add<uint32_t>(meta.state);
    print->Add<uint32_t>(meta.priority);
    print->Add<uint32_t>(meta.was_hit);
    print->Add(meta.node != 0);
    print->Add(meta.copy_prev);
  }
}

void AddSequence(const CacheState& state, uint32_t slot, Fingerprint* print) {
  const Sequence& sequence = state.sequences.at(slot);
  print->Add(slot);
  print->Add(sequence.generation);
  print->Add(sequence.tokens);
  print->Add(sequence.written);
  print->Add(sequence.known);
  print->Add(sequence.lookahead);
  print->Add(sequence.cached);
  print->Add(sequence.indexed_chunks);
  print->Add(sequence.share);
  print->Add(sequence.seated_tokens);
  print->Add(sequence.priority);
  const absl::string_view extras = state.sequences.ExtrasOf(slot);
  print->Add(extras.data(), extras.size());
  if (!sequence.is_pin) {
    print->Add(state.sequences.tokens(slot), sequence.known * sizeof(TokenId));
  }
  for (uint32_t g = 0; g < state.groups.size(); ++g) {
    const BlockTableExtent& extent = state.sequences.extent(slot, g);
    print->Add(extent.first);
    print->Add(extent.size);
    print->Add(state.sequences.blocks(slot, state.groups[g]),
               extent.size * sizeof(BlockId));
  }
}

}  // namespace

absl::Status CheckState(const CacheState& state) {
  std::vector<std::vector<uint32_t>> refs;
  for (const auto& pool : state.pools) {
    PAGED_KV_RETURN_IF_ERROR(pool->CheckInvariants());
    refs.emplace_back(pool->capacity(), 0);
  }
  uint64_t pins = 0;
  uint32_t living = 0;
  for (uint32_t slot = 0; slot < state.sequences.slots(); ++slot) {
    const Sequence& sequence = state.sequences.at(slot);
    if (!sequence.alive) continue;
    living += sequence.is_pin ? 0 : 1;
    if (sequence.written > sequence.tokens) {
      return absl::InternalError(
          absl::StrCat("sequence slot ", slot, " has ", sequence.written,
                       " tokens written of ", sequence.tokens));
    }
    for (uint32_t g = 0; g < state.groups.size(); ++g) {
      PAGED_KV_RETURN_IF_ERROR(CheckTable(state, slot, g, &refs));
    }
    if (sequence.cursor.node != 0) ++pins;
    if (!sequence.is_pin) PAGED_KV_RETURN_IF_ERROR(CheckCursor(state, slot));
  }
  if (living != state.sequences.living()) {
    return absl::InternalError(absl::StrCat("counts ", state.sequences.living(),
                                            " sequences, has ", living));
  }
  for (size_t p = 0; p < state.pools.size(); ++p) {
    for (uint32_t i = 0; i < state.pools[p]->capacity(); ++i) {
      const uint32_t counted = state.pools[p]->meta(BlockId(i)).refs;
      if (counted != refs[p][i]) {
        return absl::InternalError(
            absl::StrCat("block ", i, " of pool ", p, " counts ", counted,
                         " references, tables have ", refs[p][i]));
      }
    }
    const uint32_t waiting =
        state.pools[p]->quarantined() -
        state.pools[p]->quarantined(state.TransferQuarantine());
    if (state.steps_in_flight() == 0 && waiting > 0) {
      return absl::InternalError(
          absl::StrCat("pool ", p, " has ", waiting,
                       " blocks in quarantine and no step in flight"));
    }
  }
  PAGED_KV_RETURN_IF_ERROR(CheckTiers(state));
  return state.index->CheckInvariants(pins);
}

uint64_t FingerprintOf(const CacheState& state) {
  Fingerprint print;
  for (const auto& pool : state.pools) AddPool(*pool, &print);
  for (const auto& tier : state.tiers) {
    VisitTierState(*tier, [&](uint32_t number) { print.Add(number); });
    print.Add(tier->evictions());
  }
  print.Add(state.uploads_started);
  print.Add(state.downloads_started);
  print.Add(state.transfers_failed);
  for (uint32_t slot = 0; slot < state.sequences.slots(); ++slot) {
    if (state.sequences.at(slot).alive) AddSequence(state, slot, &print);
  }
  print.Add(state.index->size());
  print.Add(state.last_step);
  print.Add(state.retired_step);
  print.Add(state.sequences_admitted);
  print.Add(state.prompt_tokens);
  print.Add(state.hit_tokens);
  print.Add(state.blocks_taken);
  print.Add(state.blocks_evicted);
  print.Add(state.blocks_copied);
  print.Add(state.unshared_chunks);
  return print.Value();
}

}  // namespace paged_kv::internal
