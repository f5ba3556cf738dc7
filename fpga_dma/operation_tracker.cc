// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/operation_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr size_t kCompletionsAtOnce = 64;

}  // namespace

OperationTracker::OperationTracker(Device* device,
                                   const OperationLimits& limits)
    : device_(device),
      limits_(limits),
      channels_(device->info().channels),
      lanes_(2 * size_t{channels_} + device->info().compute_units.size()),
      buffer_(kCompletionsAtOnce) {}

absl::StatusOr<OpId> OperationTracker::StartUpload(SlabRange range,
                                                   uint32_t channel) {
  if (!health_.ok()) return health_;
  return Enter(device_->StartUpload(range, channel), UploadLane(channel),
               range.bytes,
               limits_.base + absl::Seconds(static_cast<double>(range.bytes) /
                                            limits_.bytes_per_second));
}

absl::StatusOr<OpId> OperationTracker::StartDownload(SlabRange range,
                                                     uint32_t channel) {
  if (!health_.ok()) return health_;
  return Enter(device_->StartDownload(range, channel), DownloadLane(channel),
               range.bytes,
               limits_.base + absl::Seconds(static_cast<double>(range.bytes) /
                                            limits_.bytes_per_second));
}

absl::StatusOr<OpId> OperationTracker::StartKernel(
    uint32_t unit, absl::Span<const KernelArgument> arguments) {
  if (!health_.ok()) return health_;
  return Enter(device_->StartKernel(unit, arguments), KernelLane(unit), 0,
               limits_.kernel);
}

absl::StatusOr<OpId> OperationTracker::Enter(absl::StatusOr<OpId> started,
                                             uint32_t lane, uint64_t bytes,
                                             absl::Duration limit) {
  if (!started.ok()) {
    if (absl::IsUnavailable(started.status())) {
      Reset(started.status().message()).IgnoreError();
    }
    return started;
  }
  Lane& entered = lanes_[lane];
  if (entered.queue.empty()) entered.head_since = device_->Now();
  entered.queue.push_back(*started);
  entered.bytes += bytes;
  const bool inserted =
      pending_.emplace(*started, Pending{lane, bytes, limit, false}).second;
  PAGED_KV_CHECK(inserted);
  return started;
}

void OperationTracker::End(const Completion& completion) {
  const auto found = pending_.find(completion.op);
  // An operation that was given up as lost and is reported after all.
  if (found == pending_.end()) return;
  Lane& lane = lanes_[found->second.lane];
  const auto place =
      std::find(lane.queue.begin(), lane.queue.end(), completion.op);
  PAGED_KV_CHECK(place != lane.queue.end());
  const bool was_head = place == lane.queue.begin();
  lane.queue.erase(place);
  lane.bytes -= found->second.bytes;
  if (was_head) lane.head_since = device_->Now();
  if (completion.status.ok()) {
    ++lane.stats.operations;
    lane.stats.bytes += found->second.bytes;
    lane.stats.busy += completion.finished - completion.started;
    resets_in_a_row_ = 0;
  } else {
    ++lane.stats.failures;
  }
  pending_.erase(found);
  done_.emplace(completion.op, completion);
}

void OperationTracker::EndAll(const absl::Status& status) {
  std::vector<OpId> ops;
  for (const auto& entry : pending_) ops.push_back(entry.first);
  std::sort(ops.begin(), ops.end());
  const absl::Time now = device_->Now();
  for (OpId op : ops) End({op, status, now, now});
}

size_t OperationTracker::Pump(absl::Time deadline) {
  if (pending_.empty() && deadline == absl::InfiniteFuture()) return 0;
  const size_t done_before = done_.size();
  const absl::Time until = std::min(deadline, EarliestTimeout());
  bool lost = false;
  bool gone = false;
  absl::Time wait_until = until;
  while (health_.ok()) {
    const absl::StatusOr<size_t> count =
        device_->Poll(wait_until, absl::MakeSpan(buffer_));
    if (!count.ok()) {
      gone = absl::IsUnavailable(count.status());
      break;
    }
    for (size_t i = 0; i < *count; ++i) {
      const Completion& completion = buffer_[i];
      // An operation of before a reset of ours has ended already.
      if (!pending_.contains(completion.op)) continue;
      lost = lost || absl::IsDataLoss(completion.status);
      gone = gone || absl::IsUnavailable(completion.status);
      End(completion);
    }
    if (*count < buffer_.size()) break;
    wait_until = device_->Now();  // take the rest without waiting
  }
  if (gone) {
    Reset("the device is gone").IgnoreError();
  } else if (lost) {
    LoseContents();
  }
  CheckTimeouts();
  return done_.size() - done_before;
}

absl::optional<Completion> OperationTracker::Take(OpId op) {
  const auto found = done_.find(op);
  if (found == done_.end()) return absl::nullopt;
  Completion completion = std::move(found->second);
  done_.erase(found);
  return completion;
}

absl::Time OperationTracker::EarliestTimeout() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const Lane& lane : lanes_) {
    if (lane.queue.empty()) continue;
    earliest = std::min(
        earliest, lane.head_since + pending_.at(lane.queue.front()).limit);
  }
  return earliest;
}

size_t OperationTracker::CheckTimeouts() {
  const absl::Time now = device_->Now();
  size_t ended = 0;
  for (Lane& lane : lanes_) {
    if (lane.queue.empty()) continue;
    const OpId op = lane.queue.front();
    if (now < lane.head_since + pending_.at(op).limit) continue;
    Pending& late = pending_.at(op);
    OpState state = device_->State(op);
    if (state == OpState::kFinished && late.finished) {
      state = OpState::kUnknown;  // and nobody was told
    }
    switch (state) {
      case OpState::kFinished:
        late.finished = true;
        lane.head_since = now;  // Poll() should report it
        break;
      case OpState::kUnknown:
        ++timeouts_;
        End({op, absl::DeadlineExceededError("the device has lost it"), now,
             now});
        ++ended;
        break;
      case OpState::kPending:
        ++timeouts_;
        Reset(absl::StrCat("operation ", op.value(), " hangs")).IgnoreError();
        return ended;
    }
  }
  return ended;
}

void OperationTracker::LoseContents() { ++generation_; }

absl::Status OperationTracker::Reset(absl::string_view why) {
  if (!health_.ok()) return health_;
  ++resets_;
  ++resets_in_a_row_;
  LoseContents();
  absl::Status reset = device_->Reset();
  for (uint32_t i = 1; !reset.ok() && i < limits_.max_resets; ++i) {
    reset = device_->Reset();
  }
  if (reset.ok() && resets_in_a_row_ > limits_.max_resets) {
    reset = absl::UnavailableError(
        absl::StrCat("no operation succeeded between ", limits_.max_resets,
                     " resets, the last because ", why));
  }
  if (!reset.ok()) {
    health_ = absl::UnavailableError(
        absl::StrCat("the device was given up: ", reset.message()));
  }
  EndAll(absl::DataLossError(absl::StrCat("lost to a reset: ", why)));
  return health_;
}

size_t OperationTracker::UploadsPending(uint32_t channel) const {
  return lanes_[UploadLane(channel)].queue.size();
}
size_t OperationTracker::DownloadsPending(uint32_t channel) const {
  return lanes_[DownloadLane(channel)].queue.size();
}
size_t OperationTracker::KernelsPending(uint32_t unit) const {
  return lanes_[KernelLane(unit)].queue.size();
}
uint32_t OperationTracker::Quietest(uint32_t first_lane) const {
  uint32_t best = 0;
  for (uint32_t i = 1; i < channels_; ++i) {
    const Lane& lane = lanes_[first_lane + i];
    const Lane& quiet = lanes_[first_lane + best];
    if (lane.queue.size() != quiet.queue.size()
            ? lane.queue.size() < quiet.queue.size()
            : lane.bytes < quiet.bytes) {
      best = i;
    }
  }
  return best;
}
uint32_t OperationTracker::QuietestUpload() const {
  return Quietest(UploadLane(0));
}
uint32_t OperationTracker::QuietestDownload() const {
  return Quietest(DownloadLane(0));
}
const LaneStats& OperationTracker::UploadStats(uint32_t channel) const {
  return lanes_[UploadLane(channel)].stats;
}
const LaneStats& OperationTracker::DownloadStats(uint32_t channel) const {
  return lanes_[DownloadLane(channel)].stats;
}
const LaneStats& OperationTracker::KernelStats(uint32_t unit) const {
  return lanes_[KernelLane(unit)].stats;
}

}  // namespace paged_kv::fpga_dma
