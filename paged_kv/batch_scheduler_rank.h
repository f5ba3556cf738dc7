// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The one order in which a scheduler serves: who runs first, who waits in
// front of whom, who gives way.

#ifndef PAGED_KV_BATCH_SCHEDULER_RANK_H_
#define PAGED_KV_BATCH_SCHEDULER_RANK_H_

#include <cstdint>
#include <tuple>

#include "absl/time/time.h"

namespace paged_kv::internal {

// A sample of a request in the request table.
struct SampleRef {
  uint32_t request = 0;  // slot of the table
  uint32_t sample = 0;

  friend bool operator==(SampleRef a, SampleRef b) {
    return a.request == b.request && a.sample == b.sample;
  }
};

// Smaller is better. A total order that never changes while a request lives,
// and whatever is better than a given rank is finitely many requests unless
// priorities are strict: hence no starvation.
struct Rank {
  int64_t level = 0;    // -priority where priorities are strict, else 0
  absl::Time arrival;   // less the head start of its priority
  uint64_t number = 0;  // of submission
  uint32_t sample = 0;

  static Rank Make(int32_t priority, absl::Time arrival, uint64_t number,
                   absl::Duration head_start) {
    Rank rank;
    rank.number = number;
    if (head_start == absl::InfiniteDuration()) {
      rank.level = -int64_t{priority};
      rank.arrival = arrival;
    } else {
      rank.arrival = arrival - head_start * priority;
    }
    return rank;
  }

  friend bool operator<(const Rank& a, const Rank& b) {
    return std::tie(a.level, a.arrival, a.number, a.sample) <
           std::tie(b.level, b.arrival, b.number, b.sample);
  }
};

struct RankedSample {
  Rank rank;
  SampleRef ref;

  friend bool operator<(const RankedSample& a, const RankedSample& b) {
    return a.rank < b.rank;
  }
};

}  // namespace paged_kv::internal

#endif  // PAGED_KV_BATCH_SCHEDULER_RANK_H_
