// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_STEP_BUILDER_H_
#define PAGED_KV_BATCH_SCHEDULER_STEP_BUILDER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "paged_kv/batch_scheduler.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_step_draft.h"
#include "paged_kv/shortage.h"
#include "paged_kv/step.h"

namespace paged_kv::internal {

// Makes steps: what runs goes on (preempting where it must), then waiting
// samples join, then the step is committed and written down. Its scratch is
// reused, so that steps without admissions allocate nothing.
class StepBuilder {
 public:
  explicit StepBuilder(SchedulerState* state);

  // BatchScheduler::Schedule().
  absl::StatusOr<ScheduledStep> Build();

 private:
  // One attempt; nullopt if there is nothing to do.
  absl::StatusOr<std::optional<ScheduledStep>> TryToBuild();
  // Running samples into the draft, decodes first, within the budgets.
  void DraftRunning();
  // Plans the draft; preempts until everybody fits or has to pause.
  absl::StatusOr<StepPlan> PlanRunning();
  // Lets decodes check drafts with what the step has left.
  absl::Status AddDrafts(StepPlan* plan);
  // The best-ranked item without room; nullopt if there is none. An error is
  // one that waiting would not cure.
  absl::StatusOr<std::optional<RankedSample>> BestWithoutRoom() const;
  // Leaves out of the draft whoever waits for transfers or for pages on the
  // device, having made room for the best of the latter; true if there were
  // any.
  bool RelieveDevice();
  void CountStalls(Shortage shortage);

  absl::StatusOr<ScheduledStep> Commit(StepPlan plan);
  void Record(const PlannedSequence& planned, StepInFlight* step);
  absl::Status ExplainNothing() const;

  SchedulerState* const state_;
  StepDraft draft_;
  uint32_t tokens_left_ = 0;
  bool device_relieved_ = false;  // in this step
  bool crowded_ = false;  // somebody pauses or was preempted in this step
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_STEP_BUILDER_H_
