// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Timing on a machine that others use too.

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_TIMING_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_TIMING_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace paged_kv::tool {

// Seconds that `work` took, and how much of them the process's threads ran.
struct Timing {
  double wall_seconds = 0;
  double cpu_seconds = 0;
};
Timing TimeOf(const std::function<void()>& work);

// The middle one, the mean of two if it is between them. REQUIRES: not empty.
double Median(std::vector<double> values);

// Repeated timings of one piece of work by some threads.
//
// A repetition in which they ran less than 97 % of the time was disturbed by
// another program (or idled); it does not count as long as at least half of
// the repetitions, and three, remain.
class QuietTimings {
 public:
  explicit QuietTimings(size_t threads) : threads_(threads) {}

  void Add(const Timing& timing) { timings_.push_back(timing); }

  size_t total() const { return timings_.size(); }
  size_t counted() const { return Counted().size(); }
  // True if so many were disturbed that all of them count.
  bool disturbed() const;
  // Seconds; of those that count. REQUIRES: total() > 0.
  double Min() const { return Quantile(0); }
  double Median() const { return tool::Median(Counted()); }
  double P90() const { return Quantile(0.9); }

 private:
  std::vector<double> Quiet() const;
  std::vector<double> Counted() const;  // sorted wall seconds
  // The nearest of the values.
  double Quantile(double q) const;

  size_t threads_;
  std::vector<Timing> timings_;
};

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_TIMING_H_
