// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_CALL_LANES_H_
#define PAGED_KV_FPGA_DMA_CALL_LANES_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fpga_dma/device_types.h"
#include "fpga_dma/modelled_times.h"

namespace paged_kv::fpga_dma {

// Turns calls that block into started operations with completions: a thread
// per lane (a DMA channel and direction, a compute unit) makes the lane's calls
// one after the other.
//
// Two clocks. Without `times`, the machine's monotonic one, counted from the
// construction. With `times` a virtual one, which moves on only when Poll()
// hands out a completion or reaches its deadline, and in HostWorks(). Both
// first wait until every call that will return has really returned, and then
// let the model take the calls up and finish them, one after the other in
// virtual time. Results and times are then the same whatever the threads do, as
// long as calls that are pending together do not touch the same memory.
//
// Thread safety: thread-compatible; one thread at a time calls.
// Invariants: an operation is reported exactly once; the order of completions
// is that of their finishing times, and of ids where those are equal.
class CallLanes {
 public:
  using Call = std::function<absl::Status()>;

  // `times` is not owned and may be null.
  CallLanes(size_t num_lanes, ModelledTimes* times);
  // Gives pending operations up and waits for calls in progress.
  ~CallLanes();

  CallLanes(const CallLanes&) = delete;
  CallLanes& operator=(const CallLanes&) = delete;

  // Queues `call` on `lane`. `kind` and `index` (of the channel or unit) are
  // for the modelled times.
  OpId Start(size_t lane, CallKind kind, uint32_t index, Call call);

  // As Device::Poll(). FailedPrecondition if nothing would ever end the wait:
  // the deadline is infinite, and nothing is pending or, by the modelled
  // clock, all that is pending hangs.
  absl::StatusOr<size_t> Poll(absl::Time deadline,
                              absl::Span<Completion> completions);
  // As Device::State().
  OpState State(OpId op);

  // Every pending operation completes now, with DataLoss; calls that have not
  // begun are dropped. Calls in progress go on.
  void GiveUp();
  // Whether all calls in progress have returned, within so much real time.
  bool WaitForCalls(std::chrono::milliseconds limit);

  absl::Time Now();
  // REQUIRES: `duration` >= 0.
  void HostWorks(absl::Duration duration);

 private:
  struct Operation {
    size_t lane = 0;
    Call call;
    uint64_t ticket = 0;
    bool stuck = false;     // hangs, or waits behind one that does
    bool returned = false;  // `completion.status` is the call's
    bool finished = false;  // `completion` has its times
    Completion completion;
  };
  struct Lane {
    std::deque<OpId> queue;
    bool stuck = false;
    bool busy = false;  // a call is in progress
    std::thread thread;
  };

  void Work(size_t lane);
  void MakeCall(OpId op, std::unique_lock<std::mutex>* lock);
  // Waits for all calls that will return.
  void WaitForReturns(std::unique_lock<std::mutex>* lock);
  // Moves the virtual clock on to `time`; what finishes until then gets its
  // times. REQUIRES: WaitForReturns().
  void RunUntil(absl::Time time);
  size_t Report(absl::Span<Completion> completions);
  bool AnyFinished() const;
  absl::StatusOr<size_t> PollModelled(absl::Time deadline,
                                      absl::Span<Completion> completions);
  absl::StatusOr<size_t> PollReal(absl::Time deadline,
                                  absl::Span<Completion> completions);
  absl::Status NothingEndsTheWait() const;
  absl::Time ClockTime() const;
  std::chrono::steady_clock::time_point ToSteady(absl::Time time) const;

  ModelledTimes* const times_;
  const std::chrono::steady_clock::time_point opened_;

  std::mutex mutex_;
  std::condition_variable work_;      // for the lanes' threads
  std::condition_variable progress_;  // for the caller
  std::vector<Lane> lanes_;
  std::map<OpId, Operation> operations_;  // started and not yet reported
  std::unordered_map<uint64_t, OpId> by_ticket_;  // those not finished
  size_t num_unreturned_ = 0;                     // operations that will return
  uint64_t next_op_ = 1;
  absl::Time virtual_now_ = absl::UnixEpoch();
  bool quit_ = false;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_CALL_LANES_H_
