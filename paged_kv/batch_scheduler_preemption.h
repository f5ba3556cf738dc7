// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_PREEMPTION_H_
#define PAGED_KV_BATCH_SCHEDULER_PREEMPTION_H_

#include <optional>

#include "paged_kv/batch_scheduler_rank.h"
#include "paged_kv/batch_scheduler_state.h"

namespace paged_kv::internal {

struct Relief {
  enum class Kind : uint8_t {
    kNow,    // blocks became available: plan again
    kLater,  // blocks come back when a step in flight completes: pause
    kNone,   // only better ones run: pause
  };

  Kind kind = Kind::kNone;
  std::optional<SampleRef> victim;  // preempted
};

// Makes room for a running sample that could not grow.
//
// The victim is the running sample of the worst rank, if that is worse than
// the sample's own: the lowest priority, then the youngest, which has the
// least to lose. Because ranks never change, the best-ranked sample is nobody's
// victim, and no two samples can preempt each other in turn.
//
// Nobody is preempted while blocks are on their way back anyway, since blocks
// freed with a step in flight can be used only once that step retires.
Relief MakeRoom(SchedulerState* state, const RankedSample& beneficiary);

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_PREEMPTION_H_
