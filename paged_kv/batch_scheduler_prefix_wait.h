// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_PREFIX_WAIT_H_
#define PAGED_KV_BATCH_SCHEDULER_PREFIX_WAIT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"
#include "paged_kv/batch_scheduler_step_draft.h"

namespace paged_kv::internal {

// Tokens that both samples share from the start, extras included, and that the
// cache could therefore share: whole chunks, and never the last token of
// `follower`.
uint32_t SharablePrefix(const SchedulerState& state, SampleRef follower,
                        SampleRef leader);

// Whether a waiting sample, of which the cache has `hit_tokens`, should leave
// this step out because a running one, or one of `admitted` which are about to
// run, will soon have computed at least prefix_wait_min_tokens more of its
// prompt. Counts the steps waited: the answer is yes at most
// max_prefix_wait_steps times.
bool WaitsForPrefix(SchedulerState* state, SampleRef ref, uint32_t hit_tokens,
                    absl::Span<const DraftItem> admitted);

// The part of this that needs no comparison of tokens: true while what `ref`
// has been waiting for is still on its way.
bool StillWaitsForPrefix(SchedulerState* state, SampleRef ref);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_PREFIX_WAIT_H_
