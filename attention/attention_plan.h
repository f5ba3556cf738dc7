// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A step's attention, planned once and run for every layer.
//
// All layers of a group attend with the same page table, so what does not
// depend on a layer is done once per step: validation, the choice of kernel,
// and the cut of the work into items. An item is up to 128 (query token, query
// head) rows that share a KV head, so that one pass over its keys serves all of
// them, and a range of keys; where a step has few rows and many keys, the keys
// are split among several items whose partial results are merged by log-sum-exp
// (Flash-Decoding, Dao et al. 2023). Decoding sequences that begin with the
// same pages read those once: the plan finds them in the page table and gives
// their rows items of their own (cascade attention). The cut depends on the
// step alone, and partial results are merged in key order, so any number of
// threads gives the same bits.

#ifndef PAGED_KV_ATTENTION_ATTENTION_PLAN_H_
#define PAGED_KV_ATTENTION_ATTENTION_PLAN_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/attention_arrays.h"
#include "attention/attention_options.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "paged_kv/page_table.h"

namespace paged_kv::attention {

// Thread safety: Run() uses buffers of the plan, so a plan runs one layer at a
// time. Different plans are independent.
class AttentionPlan {
 public:
  // One query per sequence, its last token. A sequence without tokens sees no
  // key.
  //
  // Keeps views of `table`'s arrays: they must outlive the plan unchanged.
  // InvalidArgument, with the numbers, for
  // - pages, options or a table that are not valid in themselves;
  // - head_dim or v_head_dim that are not a multiple of 8 up to 256, query
  //   heads that the KV heads do not divide;
  // - a page index outside the pages, or a block size that is not theirs;
  // - a window whose keys the table has already released.
  static absl::StatusOr<AttentionPlan> ForDecode(
      const KvPages& pages, uint32_t query_heads, const PageTable& table,
      const AttentionOptions& options);

  // The queries of sequence i are rows qo_indptr[i] .. qo_indptr[i + 1] - 1 of
  // q, and belong to the last tokens of the sequence, whose K/V is in the pages
  // already: a whole prompt, a chunk that continues a cached prefix, or one
  // token, in any mixture.
  //
  // As above; also InvalidArgument if qo_indptr is not [num_sequences + 1],
  // does not start at 0 or falls, or a sequence has more queries than tokens.
  static absl::StatusOr<AttentionPlan> ForPrefill(
      const KvPages& pages, uint32_t query_heads, const PageTable& table,
      absl::Span<const int32_t> qo_indptr,  // [num_sequences + 1]
      const AttentionOptions& options);

  AttentionPlan(AttentionPlan&&) noexcept;
  AttentionPlan& operator=(AttentionPlan&&) noexcept;
  ~AttentionPlan();

  // Rows of q and of the outputs.
  int64_t total_queries() const;
  // The instruction set that Run() uses.
  Isa isa() const;

  // Attends with the queries `q` [total_q, query_heads, head_dim] to layer
  // `layer` of `pages`, which may lie elsewhere than those of the plan (layers
  // allocated apart) but have the same shape and as many pages.
  //
  // InvalidArgument, before anything is written, for a layer that is not
  // there, other shapes or sizes, null or misaligned arrays.
  absl::Status Run(const KvPages& pages, uint32_t layer,
                   absl::Span<const float> q, const AttentionOutputs& outputs,
                   ParallelFor& parallel);

 private:
  class Impl;
  explicit AttentionPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_ATTENTION_PLAN_H_
