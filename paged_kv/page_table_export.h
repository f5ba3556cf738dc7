// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_PAGE_TABLE_EXPORT_H_
#define PAGED_KV_PAGE_TABLE_EXPORT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/cache_state.h"
#include "paged_kv/kv_cache_manager.h"
#include "paged_kv/page_table.h"

namespace paged_kv::internal {

// The part of a block table that an export shows.
struct TableRow {
  uint32_t slot;
  uint32_t tokens;  // context: positions that have K/V or get it in the step
};

// Where rows come from: a step, or a list of sequences.
class TableRows {
 public:
  // FailedPrecondition if a table changed since the step was committed.
  static absl::StatusOr<TableRows> OfStep(const CacheState& state, StepId step);
  // NotFound if an id is unknown.
  static absl::StatusOr<TableRows> OfSequences(
      const CacheState& state, absl::Span<const SequenceId> ids);

  size_t size() const {
    return record_ != nullptr ? record_->entries.size() : ids_.size();
  }
  TableRow operator[](size_t i) const;
  const PlanRecord* record() const { return record_; }

 private:
  explicit TableRows(const CacheState& state) : state_(&state) {}

  const CacheState* state_;
  const PlanRecord* record_ = nullptr;
  absl::Span<const SequenceId> ids_;
};

PageTableSize SizeOf(const CacheState& state, const TableRows& rows,
                     const GroupGeometry& group);
// InvalidArgument if an array is too short. FailedPrecondition if K/V of a row
// is not valid in the tier, or a row is not at home on the device.
absl::StatusOr<PageTable> ExportCsr(const CacheState& state,
                                    const TableRows& rows,
                                    const GroupGeometry& group, Tier tier,
                                    const PageTableBuffers& buffers);
absl::Status ExportPadded(const CacheState& state, const TableRows& rows,
                          const GroupGeometry& group, Tier tier,
                          const PaddedPageTableBuffers& buffers);
// REQUIRES: rows are of a step.
absl::Status ExportSlots(const CacheState& state, const TableRows& rows,
                         const GroupGeometry& group, Tier tier,
                         absl::Span<int64_t> slots);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_PAGE_TABLE_EXPORT_H_
