// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/stand_in/stage_threads.h"

#include <thread>
#include <utility>
#include <vector>

#include "fpga_dma/kernels/stand_in/stream_faults.h"

namespace paged_kv::fpga_dma {
namespace {

// A stage that could go on gives way once in so many accesses on average: the
// odds differ from region to region, so that both long runs of one stage and
// beat-by-beat interleavings occur.
constexpr uint64_t kLongestRun = 64;

thread_local uint64_t stage_seed = 0;
thread_local size_t depth_limit = 0;
thread_local StageThreads* current_region = nullptr;
thread_local size_t current_stage = 0;

}  // namespace

void SetStageSeed(uint64_t seed) { stage_seed = seed; }

void SetStreamDepthLimit(size_t elements) { depth_limit = elements; }
size_t LimitedDepth(size_t depth) {
  return depth_limit != 0 && depth_limit < depth ? depth_limit : depth;
}

void WaitForStream(const std::function<bool()>& ready, const char* stream) {
  // Outside a region there is nobody to wait for.
  if (current_region != nullptr) {
    current_region->Wait(current_stage, ready, stream);
  }
}

StageThreads::StageThreads()
    : random_(stage_seed), longest_run_(1 + random_() % kLongestRun) {}

void StageThreads::Add(std::function<void()> stage) {
  stages_.emplace_back().body = std::move(stage);
}

void StageThreads::Run() {
  if (stages_.empty()) return;
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    running_ = random_() % stages_.size();
    for (size_t i = 0; i < stages_.size(); ++i) {
      threads.emplace_back([this, i] { RunStage(i); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (!deadlock_.empty()) throw StreamDeadlock(deadlock_);
}

void StageThreads::RunStage(size_t index) {
  current_region = this;
  current_stage = index;
  Stage& stage = stages_[index];
  {
    std::unique_lock<std::mutex> lock(mutex_);
    stage.turn.wait(lock, [&] { return running_ == index; });
  }
  try {
    if (deadlock_.empty()) stage.body();
  } catch (const StreamDeadlock& e) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (deadlock_.empty()) deadlock_ = e.what();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  stage.done = true;
  stage.ready = nullptr;
  PassOn();
}

void StageThreads::Wait(size_t index, const std::function<bool()>& ready,
                        const char* stream) {
  Stage& stage = stages_[index];
  std::unique_lock<std::mutex> lock(mutex_);
  if (ready() && random_() % longest_run_ != 0) return;
  stage.ready = &ready;
  stage.stream = stream;
  PassOn();
  stage.turn.wait(lock, [&] { return running_ == index; });
  stage.ready = nullptr;
  if (!deadlock_.empty()) throw StreamDeadlock(deadlock_);
}

void StageThreads::PassOn() {
  std::vector<size_t> able;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    if (stage.done) continue;
    if (!deadlock_.empty() || stage.ready == nullptr || (*stage.ready)()) {
      able.push_back(i);
    }
  }
  if (able.empty()) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (stages_[i].done) continue;
      deadlock_ += (deadlock_.empty() ? "deadlock: stage " : ", stage ") +
                   std::to_string(i) + " waits for " + stages_[i].stream;
      able.push_back(i);
    }
    if (able.empty()) return;  // all are done
  }
  running_ = able[random_() % able.size()];
  stages_[running_].turn.notify_one();
}

}  // namespace paged_kv::fpga_dma
