// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/batch_scheduler_clock.h"

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace paged_kv {
namespace {

absl::Duration SinceSteadyEpoch() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

SteadyClock::SteadyClock()
    : offset_(absl::Now() - absl::UnixEpoch() - SinceSteadyEpoch()) {}

absl::Time SteadyClock::Now() const {
  return absl::UnixEpoch() + offset_ + SinceSteadyEpoch();
}

}  // namespace paged_kv
