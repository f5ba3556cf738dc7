// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How the kernels use threads. An engine that has a thread pool of its own
// implements ParallelFor over it; ThreadPool is the default.

#ifndef PAGED_KV_ATTENTION_PARALLEL_FOR_H_
#define PAGED_KV_ATTENTION_PARALLEL_FOR_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"

namespace paged_kv::attention {

// Runs independent tasks. The kernels cut their work without looking at
// num_workers(), so their results are the same bits for any implementation.
class ParallelFor {
 public:
  using Task = absl::FunctionRef<void(size_t task, size_t worker)>;

  virtual ~ParallelFor() = default;

  // Every worker index that Run() passes is below this; at least 1. Kernels
  // keep one scratch buffer per worker.
  virtual size_t num_workers() const = 0;

  // Calls `task(t, worker)` once for every t in [0, num_tasks), in any order,
  // and returns when all calls have returned. Within one Run(), calls with the
  // same worker index never overlap. What tasks wrote is visible to the caller
  // afterwards. Tasks do not throw.
  virtual void Run(size_t num_tasks, Task task) = 0;
};

// Runs everything in the calling thread.
class SerialFor final : public ParallelFor {
 public:
  size_t num_workers() const override { return 1; }
  void Run(size_t num_tasks, Task task) override;
};

// A fixed set of std::threads that take the next task from a shared counter.
// The calling thread is worker 0. Idle threads spin for a few microseconds
// (the calls of one step follow each other closely) and then sleep.
//
// Thread safety: Run() may be called from several threads; the calls take
// turns. A Run() from inside a task of any ThreadPool runs serially.
class ThreadPool final : public ParallelFor {
 public:
  // `num_workers` counts the calling thread; 0: one per hardware thread.
  explicit ThreadPool(size_t num_workers = 0);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t num_workers() const override;
  void Run(size_t num_tasks, Task task) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paged_kv::attention

#endif  // PAGED_KV_ATTENTION_PARALLEL_FOR_H_
