// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/call_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

using std::chrono::steady_clock;

}  // namespace

CallLanes::CallLanes(size_t num_lanes, ModelledTimes* times)
    : times_(times), opened_(steady_clock::now()), lanes_(num_lanes) {}

CallLanes::~CallLanes() {
  GiveUp();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
  }
  work_.notify_all();
  for (Lane& lane : lanes_) {
    if (lane.thread.joinable()) lane.thread.join();
  }
}

OpId CallLanes::Start(size_t lane_index, CallKind kind, uint32_t index,
                      Call call) {
  PAGED_KV_CHECK(lane_index < lanes_.size());
  std::lock_guard<std::mutex> lock(mutex_);
  Lane& lane = lanes_[lane_index];
  const OpId id{next_op_++};
  Operation& operation = operations_[id];
  operation.lane = lane_index;
  operation.call = std::move(call);
  operation.completion.op = id;
  if (times_ != nullptr) {
    const auto announced = times_->Announce(kind, index);
    operation.ticket = announced.ticket;
    by_ticket_.emplace(announced.ticket, id);
    lane.stuck |= announced.hangs;
    operation.stuck = lane.stuck;
  }
  if (!operation.stuck) ++num_unreturned_;
  lane.queue.push_back(id);
  // A card may have a hundred units of which a program uses four.
  if (!lane.thread.joinable()) {
    lane.thread = std::thread([this, lane_index] { Work(lane_index); });
  }
  work_.notify_all();
  return id;
}

void CallLanes::Work(size_t lane_index) {
  std::unique_lock<std::mutex> lock(mutex_);
  Lane& lane = lanes_[lane_index];
  while (true) {
    work_.wait(lock, [&] { return quit_ || !lane.queue.empty(); });
    if (quit_) return;
    const OpId op = lane.queue.front();
    lane.queue.pop_front();
    lane.busy = true;
    MakeCall(op, &lock);
    lane.busy = false;
    progress_.notify_all();
  }
}

void CallLanes::MakeCall(OpId op, std::unique_lock<std::mutex>* lock) {
  Call call = std::move(operations_.at(op).call);
  const uint64_t ticket = operations_.at(op).ticket;
  const absl::Time started = ClockTime();
  lock->unlock();
  if (times_ != nullptr) times_->Bind(ticket);
  absl::Status status = call();
  call = nullptr;  // what it holds goes before anyone learns that it is done
  lock->lock();
  const auto found = operations_.find(op);
  if (found == operations_.end() || found->second.returned) return;  // given up
  Operation& operation = found->second;
  operation.returned = true;
  if (!operation.stuck) --num_unreturned_;
  operation.completion.status = std::move(status);
  if (times_ == nullptr) {
    operation.finished = true;
    operation.completion.started = started;
    operation.completion.finished = ClockTime();
  }
}

void CallLanes::WaitForReturns(std::unique_lock<std::mutex>* lock) {
  progress_.wait(*lock, [&] { return num_unreturned_ == 0; });
}

void CallLanes::RunUntil(absl::Time time) {
  while (true) {
    const auto next = times_->NextFinish(virtual_now_);
    if (!next.has_value() || next->finished > time) break;
    virtual_now_ = std::max(virtual_now_, next->finished);
    times_->Retire(next->ticket);
    const auto found = by_ticket_.find(next->ticket);
    PAGED_KV_CHECK(found != by_ticket_.end());
    Operation& operation = operations_.at(found->second);
    by_ticket_.erase(found);
    operation.completion.started = next->started;
    operation.completion.finished = next->finished;
    operation.finished = true;
  }
  virtual_now_ = std::max(virtual_now_, time);
}

bool CallLanes::AnyFinished() const {
  return absl::c_any_of(operations_,
                        [](const auto& each) { return each.second.finished; });
}

size_t CallLanes::Report(absl::Span<Completion> completions) {
  std::vector<Completion> finished;
  for (const auto& [id, operation] : operations_) {
    if (operation.finished) finished.push_back(operation.completion);
  }
  absl::c_stable_sort(finished, [](const Completion& a, const Completion& b) {
    return a.finished < b.finished;
  });
  const size_t count = std::min(finished.size(), completions.size());
  for (size_t i = 0; i < count; ++i) {
    operations_.erase(finished[i].op);
    completions[i] = std::move(finished[i]);
  }
  return count;
}

absl::StatusOr<size_t> CallLanes::Poll(absl::Time deadline,
                                       absl::Span<Completion> completions) {
  if (completions.empty()) return 0;
  return times_ != nullptr ? PollModelled(deadline, completions)
                           : PollReal(deadline, completions);
}

absl::StatusOr<size_t> CallLanes::PollModelled(
    absl::Time deadline, absl::Span<Completion> completions) {
  std::unique_lock<std::mutex> lock(mutex_);
  WaitForReturns(&lock);
  if (!AnyFinished()) {
    const auto next = times_->NextFinish(virtual_now_);
    const absl::Time until =
        next.has_value() ? std::min(next->finished, deadline) : deadline;
    if (until == absl::InfiniteFuture()) return NothingEndsTheWait();
    RunUntil(until);
  }
  return Report(completions);
}

absl::StatusOr<size_t> CallLanes::PollReal(absl::Time deadline,
                                           absl::Span<Completion> completions) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (deadline != absl::InfiniteFuture()) {
    progress_.wait_until(lock, ToSteady(deadline),
                         [&] { return AnyFinished(); });
  } else if (operations_.empty()) {
    return NothingEndsTheWait();
  } else {
    progress_.wait(lock, [&] { return AnyFinished(); });
  }
  return Report(completions);
}

absl::Status CallLanes::NothingEndsTheWait() const {
  return absl::FailedPreconditionError(
      absl::StrCat("poll without a deadline: ", operations_.size(),
                   " operations are pending, and none of them will finish"));
}

OpState CallLanes::State(OpId op) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (times_ != nullptr) {
    WaitForReturns(&lock);
    RunUntil(virtual_now_);
  }
  const auto found = operations_.find(op);
  if (found == operations_.end()) return OpState::kUnknown;
  return found->second.finished ? OpState::kFinished : OpState::kPending;
}

void CallLanes::GiveUp() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (times_ != nullptr) {
    WaitForReturns(&lock);
    RunUntil(virtual_now_);
    times_->GiveUp(virtual_now_);
    by_ticket_.clear();
  }
  for (Lane& lane : lanes_) {
    lane.queue.clear();
    lane.stuck = false;
  }
  const absl::Time now = Now();
  for (auto& [id, operation] : operations_) {
    if (operation.finished) continue;
    operation.completion.status = absl::DataLossError(
        absl::StrCat("operation ", id.value(), " was given up by a reset"));
    operation.completion.started = now;
    operation.completion.finished = now;
    operation.call = nullptr;
    operation.returned = true;
    operation.finished = true;
  }
  num_unreturned_ = 0;
}

bool CallLanes::WaitForCalls(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return progress_.wait_for(lock, limit, [&] {
    return absl::c_none_of(lanes_, [](const Lane& lane) { return lane.busy; });
  });
}

absl::Time CallLanes::ClockTime() const {
  return absl::UnixEpoch() + absl::FromChrono(steady_clock::now() - opened_);
}

steady_clock::time_point CallLanes::ToSteady(absl::Time time) const {
  // Far enough for any wait, and it does not overflow the clock.
  const absl::Duration wait = std::clamp(
      time - absl::UnixEpoch(), absl::ZeroDuration(), absl::Hours(24 * 3650));
  return opened_ + absl::ToChronoNanoseconds(wait);
}

absl::Time CallLanes::Now() {
  return times_ != nullptr ? virtual_now_ : ClockTime();
}

void CallLanes::HostWorks(absl::Duration duration) {
  if (times_ == nullptr) return;
  std::unique_lock<std::mutex> lock(mutex_);
  WaitForReturns(&lock);
  RunUntil(virtual_now_ + duration);
}

}  // namespace paged_kv::fpga_dma
