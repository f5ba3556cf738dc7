// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/sequence_table.h"

#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::internal {

absl::Status SequenceTable::Create(uint32_t max_sequences, uint32_t max_pins,
                                   uint32_t max_tokens,
                                   uint32_t max_extra_bytes, uint32_t steps,
                                   const std::vector<GroupGeometry>& groups) {
  max_sequences_ = max_sequences;
  max_tokens_ = max_tokens;
  max_extra_bytes_ = max_extra_bytes;
  steps_ = steps;
  groups_ = groups.size();
  row_ = 0;
  for (const GroupGeometry& group : groups) row_ += group.table_width;
  const size_t slots = size_t{max_sequences} + max_pins;
  PAGED_KV_RETURN_IF_ERROR(sequences_.Create(slots));
  PAGED_KV_RETURN_IF_ERROR(tokens_.Create(slots * max_tokens));
  PAGED_KV_RETURN_IF_ERROR(extras_.Create(slots * max_extra_bytes));
  PAGED_KV_RETURN_IF_ERROR(extents_.Create(slots * groups_));
  PAGED_KV_RETURN_IF_ERROR(tables_.Create(slots * row_));
  PAGED_KV_RETURN_IF_ERROR(write_ends_.Create(slots * steps));
  free_.reserve(max_sequences);
  for (uint32_t i = max_sequences; i > 0; --i) free_.push_back(i - 1);
  free_pins_list_.reserve(max_pins);
  for (uint32_t i = max_pins; i > 0; --i) {
    free_pins_list_.push_back(max_sequences + i - 1);
  }
  return absl::OkStatus();
}

Sequence& SequenceTable::Open(uint32_t slot, bool is_pin) {
  std::vector<uint32_t>& free = is_pin ? free_pins_list_ : free_;
  PAGED_KV_CHECK(!free.empty() && free.back() == slot);
  free.pop_back();
  ++(is_pin ? pins_ : living_);
  Sequence& sequence = sequences_[slot];
  PAGED_KV_CHECK(!sequence.alive);
  const uint32_t generation = sequence.generation + 1;
  sequence = Sequence{};
  sequence.generation = generation;
  sequence.alive = true;
  sequence.is_pin = is_pin;
  for (size_t group = 0; group < groups_; ++group) {
    extent(slot, static_cast<uint32_t>(group)) = {0, 0};
  }
  return sequence;
}

void SequenceTable::Close(uint32_t slot) {
  Sequence& sequence = sequences_[slot];
  PAGED_KV_CHECK(sequence.alive);
  sequence.alive = false;
  --(sequence.is_pin ? pins_ : living_);
  (sequence.is_pin ? free_pins_list_ : free_).push_back(slot);
}

uint32_t SequenceTable::Find(SequenceId id, bool is_pin) const {
  const uint32_t slot = static_cast<uint32_t>(id.value());
  const uint32_t generation = static_cast<uint32_t>(id.value() >> 32);
  if (slot >= slots()) return kNone;
  const Sequence& sequence = sequences_[slot];
  const bool found = sequence.alive && sequence.generation == generation &&
                     sequence.is_pin == is_pin;
  return found ? slot : kNone;
}

}  // namespace paged_kv::internal
