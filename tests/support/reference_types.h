// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the naive model keeps of sequences, plans and steps.

#ifndef PAGED_KV_TESTS_SUPPORT_REFERENCE_TYPES_H_
#define PAGED_KV_TESTS_SUPPORT_REFERENCE_TYPES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "paged_kv/step.h"
#include "paged_kv/types.h"
#include "tests/support/reference_content.h"

namespace paged_kv::testing {

// Key extras of one sequence by the chunk that they fall into.
using ReferenceExtras = std::vector<std::pair<uint32_t, std::string>>;

// One layer group: which blocks a sequence of some length needs.
struct ReferenceGroup {
  uint32_t block_tokens = 0;
  uint32_t window = 0;
  uint32_t sink_blocks = 0;
  uint32_t pool = 0;
  uint32_t first_place = 0;  // in ReferenceContent::copies

  uint32_t Blocks(uint32_t tokens) const {
    return (tokens + block_tokens - 1) / block_tokens;
  }
  // The first block that the token at `position` attends to, sinks aside.
  uint32_t FirstNeeded(uint32_t position) const {
    if (window == 0 || position + 1 <= window) return 0;
    return (position + 1 - window) / block_tokens;
  }
};

inline constexpr uint32_t kNoReferenceBlock = 0xFFFFFFFF;

// A block table: blocks[i] is kNoReferenceBlock where a window released it.
struct ReferenceTable {
  std::vector<uint32_t> blocks;
  uint32_t first = 0;  // blocks below are released, except the sinks
};

// A sequence, or a pin, which is one that does not grow.
struct ReferenceSequence {
  SequenceId id;
  std::vector<TokenId> known;  // values; a prompt's may be ahead of `tokens`
  uint32_t tokens = 0;
  uint32_t written = 0;
  uint32_t lookahead = 0;
  uint32_t cached = 0;
  uint32_t priority = 0;
  bool share = false;
  ReferenceExtras extras;
  ReferenceContent* tip = nullptr;  // of its shared chunks
  uint32_t shared_chunks = 0;
  uint64_t last_step = 0;      // the latest that it was in
  uint64_t table_version = 0;  // changes with every change but a retirement
  absl::InlinedVector<ReferenceTable, 2> tables;  // by group
};

// What Plan() and PlanFitting() should give.
struct ReferencePlan {
  struct Entry {
    ReferenceContent* hit = nullptr;  // of cached_tokens
    uint32_t reserve = 0;
    ReferenceExtras extras;
  };

  absl::StatusCode code = absl::StatusCode::kOk;
  std::vector<absl::StatusCode> outcomes;  // PlanFitting: of each request
  std::vector<PlannedSequence> sequences;  // ids of admissions: 0
  std::vector<Entry> entries;              // parallel to sequences
  std::vector<NewBlock> new_blocks;        // blocks: kNoBlock
  std::vector<BlockCopy> copies;           // targets: kNoBlock
  // Blocks that must not be evicted for this plan, (pool, block).
  std::vector<std::pair<uint32_t, uint32_t>> hits;
};

// A committed step that has not retired.
struct ReferenceStep {
  struct Part {
    SequenceId id;
    uint32_t end;  // tokens that it writes, as far as they were not cut off
    uint64_t table_version;
  };
  StepId id;
  uint32_t layers_written = 0;
  std::vector<Part> parts;
};

}  // namespace paged_kv::testing

#endif  // PAGED_KV_TESTS_SUPPORT_REFERENCE_TYPES_H_
