// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_KV_BATCH_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_KV_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "attention/append_kv.h"
#include "attention/attention_plan.h"
#include "attention/isa.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/kernels/attention_case.h"
#include "benchmarks/tool/kernels/huge_buffer.h"
#include "benchmarks/tool/progress.h"
#include "paged_kv/page_table.h"

namespace paged_kv::tool {

// The memory of one case: pages in the library's own arrangement, a page table
// that is shuffled over all of them, queries and outputs.
//
// Thread safety: none.
class KvBatch {
 public:
  // Reserves memory and makes the table. The case is complete.
  static absl::StatusOr<KvBatch> Create(const AttentionCase& attention_case,
                                        uint64_t seed);

  // The step's plan; errors of AttentionPlan. Refers to this batch.
  absl::StatusOr<attention::AttentionPlan> Plan(
      attention::Isa isa, bool share_prefixes = true) const;

  // Writes normally distributed K and V into every slot of every page, and so
  // touches all memory.
  absl::Status Fill(attention::ParallelFor& parallel, Progress& progress);

  // Attends with all queries to one layer.
  absl::Status Attend(attention::AttentionPlan& plan, uint32_t layer,
                      attention::ParallelFor& parallel);
  // Writes the K and V of all tokens that have a query into one layer.
  absl::Status Append(uint32_t layer, attention::ParallelFor& parallel,
                      attention::Isa isa);

  const AttentionCase& attention_case() const { return case_; }
  const attention::KvPages& pages() const { return pages_; }
  PageTable table() const;
  const HugeBuffer& memory() const { return memory_; }
  absl::Span<const float> q() const { return q_; }
  absl::Span<const float> out() const { return out_; }

 private:
  KvBatch(const AttentionCase& attention_case, uint64_t seed,
          HugeBuffer memory);
  void MakeTable();
  void MakeSlots();
  attention::KvRows RandomRows(uint32_t dim, uint64_t* draw) const;

  AttentionCase case_;
  uint64_t seed_;
  HugeBuffer memory_;
  attention::KvPages pages_;
  std::vector<int32_t> indptr_, page_indices_, last_page_tokens_, first_token_;
  std::vector<int32_t> qo_indptr_;
  std::vector<int64_t> append_slots_;  // of all tokens that have a query
  std::vector<float> normals_;         // where K and V rows are taken from
  std::vector<float> q_;               // [total_q, query_heads, head_dim]
  std::vector<float> out_;             // [total_q, query_heads, v_head_dim]
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_KV_BATCH_H_
