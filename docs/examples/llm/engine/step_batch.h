// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_BATCH_H_
#define PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "attention/copy_blocks.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/page_table.h"
#include "paged_kv/types.h"

namespace paged_kv::llm {

// The engine keeps all layers in one layer group.
inline constexpr GroupId kAllLayers{0};

// What one sequence computes in a step.
struct SequenceRows {
  absl::Span<const TokenId> tokens;  // new ones and drafts
  uint32_t first_position = 0;
  uint32_t logits = 0;      // wanted of so many last rows
  Tier tier = Tier::kHost;  // where the sequence is read and written
};

// A step as the forward pass takes it: rows of all sequences one after the
// other, whole prompts, chunks and single tokens alike.
struct StepBatch {
  std::vector<TokenId> tokens;              // [rows]
  std::vector<uint32_t> positions;          // [rows]
  std::vector<int32_t> qo_indptr;           // [sequences + 1]: rows of each
  std::vector<int64_t> slots;               // [rows]: where K/V goes
  std::vector<uint32_t> logit_rows;         // ascending
  std::vector<attention::PageCopy> copies;  // before K/V is written
  PageTable table;                          // over the arrays below

  size_t rows() const { return tokens.size(); }
  // Every sequence has one row.
  bool IsDecode() const { return rows() + 1 == qo_indptr.size(); }

  std::vector<int32_t> indptr, page_indices, last_page_tokens, first_token;
};

// Fills `batch` for a committed step. `sequences` are in the step's order and
// as many; their rows are the step's new tokens and draft slots. Pages of the
// device are counted from `first_device_page` on. InvalidArgument if they are
// not. Other errors are the cache's.
absl::Status FillStepBatch(const KvCacheManager& cache, StepId step,
                           absl::Span<const SequenceRows> sequences,
                           StepBatch* batch, uint32_t first_device_page = 0);

}  // namespace paged_kv::llm

#endif  // PAGED_KV_DOCS_EXAMPLES_LLM_ENGINE_STEP_BATCH_H_
