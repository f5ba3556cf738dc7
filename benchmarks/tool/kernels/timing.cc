// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/kernels/timing.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

constexpr double kQuietShare = 0.97;
constexpr size_t kMinQuiet = 3;

double SecondsOf(clockid_t clock) {
  timespec now{};
  PAGED_KV_CHECK(clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Timing TimeOf(const std::function<void()>& work) {
  const double cpu = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  const double wall = SecondsOf(CLOCK_MONOTONIC);
  work();
  Timing timing;
  timing.wall_seconds = SecondsOf(CLOCK_MONOTONIC) - wall;
  timing.cpu_seconds = SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  return timing;
}

double Median(std::vector<double> values) {
  PAGED_KV_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t last = values.size() - 1;
  return 0.5 * (values[last / 2] + values[(last + 1) / 2]);
}

std::vector<double> QuietTimings::Quiet() const {
  std::vector<double> quiet;
  for (const Timing& timing : timings_) {
    if (timing.cpu_seconds >=
        kQuietShare * static_cast<double>(threads_) * timing.wall_seconds) {
      quiet.push_back(timing.wall_seconds);
    }
  }
  return quiet;
}

bool QuietTimings::disturbed() const {
  const size_t quiet = Quiet().size();
  return quiet < kMinQuiet || 2 * quiet < timings_.size();
}

std::vector<double> QuietTimings::Counted() const {
  std::vector<double> counted = Quiet();
  if (disturbed()) {
    counted.clear();
    for (const Timing& timing : timings_) {
      counted.push_back(timing.wall_seconds);
    }
  }
  std::sort(counted.begin(), counted.end());
  return counted;
}

double QuietTimings::Quantile(double q) const {
  const std::vector<double> sorted = Counted();
  PAGED_KV_CHECK(!sorted.empty());
  const double place = q * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(std::lround(place))];
}

}  // namespace paged_kv::tool
