// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_SEQUENCE_TABLE_H_
#define PAGED_KV_SEQUENCE_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "paged_kv/group_geometry.h"
#include "paged_kv/lazy_array.h"
#include "paged_kv/prefix_index.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// One sequence, or one pin, which is a sequence that nobody can grow.
struct Sequence {
  uint32_t generation;
  bool alive;
  bool is_pin;
  bool share;  // uses and enters the prefix index
  uint8_t priority;

  uint32_t tokens;     // committed
  uint32_t written;    // retired; <= tokens
  uint32_t known;      // values known; may exceed tokens
  uint32_t lookahead;  // draft slots behind `tokens`
  uint32_t cached;     // found at admission
  uint32_t extra_bytes;

  // The chunks that are in the index, and their last node (pinned).
  uint32_t indexed_chunks;
  PrefixCursor cursor;

  // Whole blocks below this many tokens are seated on the device (residency.h).
  uint32_t seated_tokens;
  // Some of its K/V may not have arrived in the tier where the sequence is.
  bool settling;

  uint64_t swap_ticket;  // of the last swap that names it
  uint64_t table_epoch;  // changes whenever an exported table would
  uint64_t plan_ticket;  // of the last plan that names it
  uint64_t last_step;    // the latest step that it is in; 0: none
};

// A sequence's blocks in one group: logical blocks [first, size) and the sinks
// before them are held; entries between are kNoBlock.
struct BlockTableExtent {
  uint32_t first;
  uint32_t size;
};

// The slots of sequences with their tokens, extras and block tables, all in
// arrays made at the start. Thread safety: thread-compatible.
class SequenceTable {
 public:
  // `steps`: records of steps, planned and in flight.
  absl::Status Create(uint32_t max_sequences, uint32_t max_pins,
                      uint32_t max_tokens, uint32_t max_extra_bytes,
                      uint32_t steps, const std::vector<GroupGeometry>& groups);

  uint32_t slots() const { return static_cast<uint32_t>(sequences_.size()); }
  uint32_t max_tokens() const { return max_tokens_; }
  uint32_t max_sequences() const { return max_sequences_; }
  uint32_t living() const { return living_; }
  uint32_t pins() const { return pins_; }
  uint32_t free_slots() const { return max_sequences_ - living_; }
  uint32_t free_pins() const { return slots() - max_sequences_ - pins_; }

  // The slot that the i-th admission from now takes. REQUIRES: i < free_slots.
  uint32_t NextSlot(uint32_t i) const { return free_[free_.size() - 1 - i]; }
  uint32_t NextPinSlot() const { return free_pins_list_.back(); }
  SequenceId NextId(uint32_t slot) const {
    return Name(slot, sequences_[slot].generation + 1);
  }
  // Makes the sequence of the next slot; all fields but the name are zero.
  Sequence& Open(uint32_t slot, bool is_pin);
  void Close(uint32_t slot);

  // kNone if the id names no living sequence (or pin, if `is_pin`).
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  uint32_t Find(SequenceId id, bool is_pin = false) const;
  SequenceId IdOf(uint32_t slot) const {
    return Name(slot, sequences_[slot].generation);
  }

  Sequence& at(uint32_t slot) { return sequences_[slot]; }
  const Sequence& at(uint32_t slot) const { return sequences_[slot]; }

  // [max_tokens] values; of a free slot too, as scratch for its next owner.
  TokenId* tokens(uint32_t slot) {
    return tokens_.data() + size_t{slot} * max_tokens_;
  }
  const TokenId* tokens(uint32_t slot) const {
    return tokens_.data() + size_t{slot} * max_tokens_;
  }
  char* extras(uint32_t slot) {
    return extras_.data() + size_t{slot} * max_extra_bytes_;
  }
  absl::string_view ExtrasOf(uint32_t slot) const {
    return {extras_.data() + size_t{slot} * max_extra_bytes_,
            sequences_[slot].extra_bytes};
  }
  BlockTableExtent& extent(uint32_t slot, uint32_t group) {
    return extents_[size_t{slot} * groups_ + group];
  }
  const BlockTableExtent& extent(uint32_t slot, uint32_t group) const {
    return extents_[size_t{slot} * groups_ + group];
  }
  BlockId* blocks(uint32_t slot, const GroupGeometry& group) {
    return tables_.data() + size_t{slot} * row_ + group.table_offset;
  }
  const BlockId* blocks(uint32_t slot, const GroupGeometry& group) const {
    return tables_.data() + size_t{slot} * row_ + group.table_offset;
  }

  // Of a step in flight that the sequence is in (by the number of its record):
  // the sequence's tokens behind it, as far as they were not cut off since.
  uint32_t& write_end(uint32_t slot, uint32_t step_record) {
    return write_ends_[size_t{slot} * steps_ + step_record];
  }
  // Cuts off what steps in flight still write behind `tokens`.
  void CutWriteEnds(uint32_t slot, uint32_t tokens) {
    for (uint32_t step = 0; step < steps_; ++step) {
      write_end(slot, step) = std::min(write_end(slot, step), tokens);
    }
  }

 private:
  static SequenceId Name(uint32_t slot, uint32_t generation) {
    return SequenceId(uint64_t{generation} << 32 | slot);
  }

  uint32_t max_sequences_ = 0;
  uint32_t max_tokens_ = 0;
  uint32_t max_extra_bytes_ = 0;
  uint32_t steps_ = 0;
  size_t groups_ = 0;
  size_t row_ = 0;
  uint32_t living_ = 0;
  uint32_t pins_ = 0;
  LazyArray<Sequence> sequences_;        // then the pins
  LazyArray<TokenId> tokens_;            // [slot][max_tokens]
  LazyArray<char> extras_;               // [slot][max_extra_bytes]
  LazyArray<BlockTableExtent> extents_;  // [slot][group]
  LazyArray<BlockId> tables_;            // [slot][sum of table widths]
  LazyArray<uint32_t> write_ends_;       // [slot][steps]
  std::vector<uint32_t> free_;           // slots, last taken first
  std::vector<uint32_t> free_pins_list_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_SEQUENCE_TABLE_H_
