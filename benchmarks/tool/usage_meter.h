// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_USAGE_METER_H_
#define PAGED_KV_BENCHMARKS_TOOL_USAGE_METER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "paged_kv/cache_stats.h"

namespace paged_kv::tool {

// One slot state each, in slot-seconds or as shares of something.
struct SlotShares {
  double live = 0;
  double tail = 0;
  double lookahead = 0;
  double reserved = 0;
  double cached = 0;
  double duplicate = 0;
  double quarantined = 0;
  double free = 0;

  double Allocated() const {
    return live + tail + lookahead + reserved + duplicate;
  }
};

// The pool at one moment, for plots.
struct UsageSample {
  absl::Duration time;
  SlotCounts slots;
  uint32_t running = 0;
  uint32_t waiting = 0;
};

// Integrates slot states over time. See docs/glossary.md for the terms.
class UsageMeter {
 public:
  explicit UsageMeter(uint64_t capacity_slots)
      : capacity_slots_(capacity_slots) {}

  // The pool was in this state for `duration`, ending at `sample.time`.
  // Internal if the states do not add up to the capacity.
  absl::Status Add(const UsageSample& sample, absl::Duration duration);

  // Which moments an average is over.
  enum class When {
    kAlways,
    kUnderLoad,  // requests were waiting; all moments if that never was so
  };

  // Time-weighted share of allocated slots in each state that counts as
  // allocated. All zero if nothing ever was.
  SlotShares SharesOfAllocated(When when = When::kAlways) const;
  // Time-weighted share of the capacity in each state.
  SlotShares SharesOfCapacity(When when = When::kAlways) const;
  // Live slots / allocated slots.
  double EffectiveUtilisation() const { return SharesOfAllocated().live; }

  double MeanRunning(When when = When::kAlways) const;
  uint32_t peak_running() const { return peak_running_; }
  uint64_t peak_allocated() const { return peak_allocated_; }
  uint64_t steps() const { return steps_; }

  // At most a thousand moments, evenly spaced in steps, in order.
  const std::vector<UsageSample>& samples() const { return samples_; }

 private:
  struct Sums {
    SlotShares slot_seconds;
    double running_seconds = 0;
    double seconds = 0;

    void Add(const UsageSample& sample, double duration_s);
  };

  const Sums& SumsOf(When when) const {
    return when == When::kUnderLoad && loaded_.seconds > 0 ? loaded_ : all_;
  }

  const uint64_t capacity_slots_;
  Sums all_;
  Sums loaded_;
  uint32_t peak_running_ = 0;
  uint64_t peak_allocated_ = 0;
  uint64_t steps_ = 0;
  uint64_t sample_every_ = 1;
  std::vector<UsageSample> samples_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_USAGE_METER_H_
