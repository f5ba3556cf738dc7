// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the stages of a dataflow region as threads, one of which moves at a
// time. Who is next is drawn from a seed at every access to a stream, so a
// schedule repeats exactly, and a deadlock is seen when it happens, without a
// time-out: no stage can go on.

#ifndef PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STAGE_THREADS_H_
#define PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STAGE_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>

namespace paged_kv::fpga_dma {

// The schedule of the regions that this thread runs from now on.
void SetStageSeed(uint64_t seed);
// FIFOs that this thread makes from now on hold at most so many elements,
// whatever the kernel asks for. 0: as many as it asks for.
void SetStreamDepthLimit(size_t elements);
size_t LimitedDepth(size_t depth);

// Called by a running stage before it accesses a stream: lets others go first,
// and returns when `ready`. Throws StreamDeadlock when that never happens.
// `stream` is its name.
void WaitForStream(const std::function<bool()>& ready, const char* stream);

// One dataflow region. Thread safety: Add() and Run() by one thread.
class StageThreads {
 public:
  StageThreads();

  void Add(std::function<void()> stage);
  // Runs all stages to their end. Throws StreamDeadlock, naming what each
  // stage waits for, after all have been unwound.
  void Run();

 private:
  friend void WaitForStream(const std::function<bool()>&, const char*);
  struct Stage {
    std::function<void()> body;
    std::condition_variable turn;
    const std::function<bool()>* ready = nullptr;  // nullptr: can go on
    const char* stream = nullptr;                  // what it waits for
    bool done = false;
  };

  void RunStage(size_t index);
  void Wait(size_t index, const std::function<bool()>& ready,
            const char* stream);
  // Chooses who moves next, or finds a deadlock. The mutex is held.
  void PassOn();

  std::mutex mutex_;
  std::deque<Stage> stages_;
  size_t running_ = 0;  // whose turn it is
  std::mt19937_64 random_;
  uint64_t longest_run_;  // accesses between turns, on average
  std::string deadlock_;  // not empty: every stage unwinds
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_KERNELS_STAND_IN_STAGE_THREADS_H_
