// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STEP_DRAFT_H_
#define PAGED_KV_BATCH_SCHEDULER_STEP_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/shortage.h"
#include "paged_kv/step.h"

namespace paged_kv::internal {

struct DraftItem {
  SampleRef ref;
  uint32_t tokens = 0;  // to compute
  uint32_t drafts = 0;  // of the sample's, to check behind them
};

// Whether the K/V that a running sample's next step reads is where that runs.
bool CanRunHere(const SchedulerState& state, SampleRef ref);

// Who shall compute how much in the step being made, and what the cache says
// to that. The cache alone counts blocks: the scheduler asks it with plans,
// which have no effect until they are committed.
class StepDraft {
 public:
  StepDraft(SchedulerState* state, size_t max_items);

  void Clear() { items_.clear(); }
  void Add(const DraftItem& item) { items_.push_back(item); }
  // Keeps the first `size` items.
  void Truncate(size_t size) { items_.resize(size); }
  void Erase(SampleRef ref);
  // Drafts that an item checks. REQUIRES: i < size().
  void SetDrafts(size_t i, uint32_t drafts) { items_[i].drafts = drafts; }

  // Erases those that lacked `shortage` in the last Plan(); false if none did.
  bool EraseLacking(Shortage shortage);
  // Erases those that no longer run or cannot run where they are.
  void EraseStopped();

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const DraftItem& item(size_t i) const { return items_[i]; }
  absl::Span<const DraftItem> items() const { return items_; }

  // Plans what fits of the draft; outcome(i) says why item i does not.
  absl::StatusOr<StepPlan> Plan();

  // The same for a question only: with room for every sample's whole prompt
  // and then for `growth_tokens` more per sequence, but never for more than it
  // can need. Where windows release blocks, a prompt never needs room for all
  // of itself, and the question is only about this step and the growth.
  absl::Status Probe(uint32_t growth_tokens);

  // OK if item i had room in the last Plan() or Probe().
  const absl::Status& outcome(size_t i) const { return outcomes_[i]; }
  // Every item had.
  bool AllFit() const;

 private:
  void MakeRequest(const DraftItem& item, StepRequest* request) const;
  absl::StatusOr<StepPlan> PlanRequests();

  SchedulerState* const state_;
  std::vector<DraftItem> items_;
  std::vector<StepRequest> requests_;
  std::vector<absl::Status> outcomes_;
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_STEP_DRAFT_H_
