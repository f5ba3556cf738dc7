// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Drafts: from a proposal over the step that checks them to what is kept.

#ifndef PAGED_KV_BATCH_SCHEDULER_SPECULATION_H_
#define PAGED_KV_BATCH_SCHEDULER_SPECULATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_step_draft.h"
#include "paged_kv/types.h"

namespace paged_kv::internal {

// BatchScheduler::Propose().
absl::Status ProposeDrafts(SchedulerState* state, SampleRef ref,
                           absl::Span<const TokenId> drafts);

// Lets the decodes of `draft`, which was planned and fits, check drafts in its
// order with the tokens that the step has left over. False if none does; else
// it is to be planned again, with lookahead, and may not fit.
bool ChooseDrafts(const SchedulerState& state, StepDraft* draft);

// The step that checked `drafts` of a running sample has retired and the first
// `accepted` were right: these become tokens of its sequence, the blocks of the
// others are given back.
absl::Status KeepDrafts(SchedulerState* state, SampleRef ref,
                        absl::Span<const TokenId> drafts, uint32_t accepted);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_SPECULATION_H_
