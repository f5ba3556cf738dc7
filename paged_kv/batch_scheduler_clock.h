// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BATCH_SCHEDULER_CLOCK_H_
#define PAGED_KV_BATCH_SCHEDULER_CLOCK_H_

#include "absl/time/time.h"

namespace paged_kv {

// Where the scheduler's time comes from. Policy never reads a clock of its
// own, so that a simulation decides what time it is.
class Clock {
 public:
  virtual ~Clock() = default;

  // Should not go back; a scheduler treats a step back as no time passing.
  virtual absl::Time Now() const = 0;
};

// Wall-clock time at construction, then advancing with std's steady clock, so
// that it never goes back. Thread-safe.
class SteadyClock final : public Clock {
 public:
  SteadyClock();
  absl::Time Now() const override;

 private:
  absl::Duration offset_;  // from the steady clock's epoch to the Unix epoch
};

// Stands still until it is moved: for simulations and tests.
class ManualClock final : public Clock {
 public:
  ManualClock() = default;
  explicit ManualClock(absl::Time now) : now_(now) {}

  absl::Time Now() const override { return now_; }
  void Set(absl::Time now) { now_ = now; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

}  // namespace paged_kv

#endif  // PAGED_KV_BATCH_SCHEDULER_CLOCK_H_
