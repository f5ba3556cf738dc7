// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "attention/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace paged_kv::attention {
namespace {

// Set while this thread runs a task of some pool.
thread_local bool inside_task = false;

// Yields before a waiting thread sleeps: some tens of microseconds, more than
// lies between two kernel calls of a step, less than anybody notices.
constexpr int kSpins = 100;

template <typename Condition>
bool SpinUntil(Condition condition) {
  for (int i = 0; i < kSpins; ++i) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return condition();
}

}  // namespace

void SerialFor::Run(size_t num_tasks, Task task) {
  for (size_t t = 0; t < num_tasks; ++t) task(t, 0);
}

class ThreadPool::Impl {
 public:
  explicit Impl(size_t num_workers) {
    threads_.reserve(num_workers - 1);
    for (size_t worker = 1; worker < num_workers; ++worker) {
      threads_.emplace_back([this, worker] { WorkerLoop(worker); });
    }
  }

  ~Impl() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  size_t num_workers() const { return threads_.size() + 1; }

  void Run(size_t num_tasks, Task task) {
    std::lock_guard<std::mutex> turn(run_mutex_);
    task_ = &task;
    num_tasks_ = num_tasks;
    next_task_.store(0, std::memory_order_relaxed);
    busy_.store(threads_.size(), std::memory_order_relaxed);
    {
      // Under the lock, so that a thread between its last look and its sleep
      // cannot miss the round.
      std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    TakeTasks(0);
    const auto all_done = [this] {
      return busy_.load(std::memory_order_acquire) == 0;
    };
    if (!SpinUntil(all_done)) {
      std::unique_lock<std::mutex> lock(mutex_);
      done_.wait(lock, all_done);
    }
    task_ = nullptr;
  }

 private:
  void TakeTasks(size_t worker) {
    inside_task = true;
    for (;;) {
      const size_t t = next_task_.fetch_add(1, std::memory_order_relaxed);
      if (t >= num_tasks_) break;
      (*task_)(t, worker);
    }
    inside_task = false;
  }

  void WorkerLoop(size_t worker) {
    for (uint64_t seen = 0;; ++seen) {
      const auto new_round = [this, seen] {
        return round_.load(std::memory_order_acquire) != seen;
      };
      if (!SpinUntil(new_round)) {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, new_round);
      }
      if (stop_) return;
      TakeTasks(worker);
      if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // The lock closes the gap between the caller's look and its sleep.
        std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }

  std::mutex run_mutex_;  // one Run() at a time
  // The job. Written before round_ is advanced and read after it was seen.
  const Task* task_ = nullptr;
  size_t num_tasks_ = 0;
  bool stop_ = false;

  std::mutex mutex_;  // of both condition variables
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<uint64_t> round_{0};
  std::atomic<size_t> next_task_{0};
  std::atomic<size_t> busy_{0};  // threads that still work on this round
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(size_t num_workers) {
  if (num_workers == 0) {
    num_workers = std::max<size_t>(1, std::thread::hardware_concurrency());
  }
  impl_ = std::make_unique<Impl>(num_workers);
}

ThreadPool::~ThreadPool() = default;

size_t ThreadPool::num_workers() const { return impl_->num_workers(); }

void ThreadPool::Run(size_t num_tasks, Task task) {
  if (inside_task || num_tasks <= 1 || impl_->num_workers() == 1) {
    for (size_t t = 0; t < num_tasks; ++t) task(t, 0);
    return;
  }
  impl_->Run(num_tasks, task);
}

}  // namespace paged_kv::attention
