// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_OPERATION_TRACKER_H_
#define PAGED_KV_FPGA_DMA_OPERATION_TRACKER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fpga_dma/device.h"
#include "fpga_dma/device_types.h"

namespace paged_kv::fpga_dma {

// How long an operation may take once its channel or unit is free for it.
struct OperationLimits {
  absl::Duration base = absl::Milliseconds(20);
  // The slowest rate at which a transfer is still alive.
  double bytes_per_second = 1e9;
  absl::Duration kernel = absl::Milliseconds(500);
  // Resets in a row, without an operation that succeeds between them, after
  // which the device is given up.
  uint32_t max_resets = 4;
};

// Figures of one channel and direction, or of one compute unit.
struct LaneStats {
  uint64_t operations = 0;  // that ended well
  uint64_t failures = 0;
  uint64_t bytes = 0;
  absl::Duration busy;  // finished - started of those that ended well
};

// Starts operations on a device for several users, keeps what Device::Poll()
// reports until the user asks for it, and ends those that never finish.
//
// An operation that is late is looked up (Device::State): one that has finished
// is waited for once more, one that the device has lost, or will not report,
// fails, and one that is pending may still write, so nothing less than a reset
// ends it. After a reset, wanted
// or not, device memory is undefined: generation() has moved on.
//
// Thread safety: thread-compatible. Everyone who starts operations on the
// device does so through its one tracker.
class OperationTracker {
 public:
  // `device` outlives the tracker.
  OperationTracker(Device* device, const OperationLimits& limits);

  Device* device() const { return device_; }
  // How often the contents of device memory were lost.
  uint64_t generation() const { return generation_; }
  // Why the device was given up, or OK.
  const absl::Status& health() const { return health_; }

  // As Device::Start*. Unavailable once the device was given up; a device that
  // is gone is reset and Unavailable returned, and the next call may succeed.
  absl::StatusOr<OpId> StartUpload(SlabRange range, uint32_t channel);
  absl::StatusOr<OpId> StartDownload(SlabRange range, uint32_t channel);
  absl::StatusOr<OpId> StartKernel(uint32_t unit,
                                   absl::Span<const KernelArgument> arguments);

  // Waits until an operation has ended, or Now() reaches `deadline`, whatever
  // comes first; with nothing pending it waits for the deadline, if that is
  // finite. Returns how many ended.
  size_t Pump(absl::Time deadline);
  // How the operation ended, once; nothing while it is pending.
  absl::optional<Completion> Take(OpId op);

  // Resets the device, which ends all pending operations with DataLoss.
  absl::Status Reset(absl::string_view why);

  size_t num_pending() const { return pending_.size(); }
  // Operations that wait for or use a channel, a unit.
  size_t UploadsPending(uint32_t channel) const;
  size_t DownloadsPending(uint32_t channel) const;
  size_t KernelsPending(uint32_t unit) const;

  // The channel with the fewest operations, of equal ones that with the fewest
  // bytes to move.
  uint32_t QuietestUpload() const;
  uint32_t QuietestDownload() const;

  uint64_t timeouts() const { return timeouts_; }
  uint64_t resets() const { return resets_; }
  const LaneStats& UploadStats(uint32_t channel) const;
  const LaneStats& DownloadStats(uint32_t channel) const;
  const LaneStats& KernelStats(uint32_t unit) const;

 private:
  struct Lane {
    std::deque<OpId> queue;  // in the order of execution
    absl::Time head_since;   // when queue.front() could begin
    uint64_t bytes = 0;      // of the queue
    LaneStats stats;
  };
  struct Pending {
    uint32_t lane;
    uint64_t bytes;
    absl::Duration limit;
    bool finished = false;  // the device said so when it was late
  };

  uint32_t UploadLane(uint32_t channel) const { return channel; }
  uint32_t DownloadLane(uint32_t channel) const { return channels_ + channel; }
  uint32_t KernelLane(uint32_t unit) const { return 2 * channels_ + unit; }

  uint32_t Quietest(uint32_t first_lane) const;
  absl::StatusOr<OpId> Enter(absl::StatusOr<OpId> started, uint32_t lane,
                             uint64_t bytes, absl::Duration limit);
  void End(const Completion& completion);
  void EndAll(const absl::Status& status);
  absl::Time EarliestTimeout() const;
  size_t CheckTimeouts();
  void LoseContents();

  Device* const device_;
  const OperationLimits limits_;
  const uint32_t channels_;
  std::vector<Lane> lanes_;  // uploads, downloads, units
  absl::flat_hash_map<OpId, Pending> pending_;
  absl::flat_hash_map<OpId, Completion> done_;
  std::vector<Completion> buffer_;
  uint64_t generation_ = 0;
  uint64_t timeouts_ = 0;
  uint64_t resets_ = 0;
  uint32_t resets_in_a_row_ = 0;
  absl::Status health_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_OPERATION_TRACKER_H_
