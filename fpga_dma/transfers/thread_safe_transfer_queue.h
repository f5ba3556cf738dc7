// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_THREAD_SAFE_TRANSFER_QUEUE_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_THREAD_SAFE_TRANSFER_QUEUE_H_

#include <algorithm>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fpga_dma/transfers/transfer_queue.h"

namespace paged_kv::fpga_dma {

// A TransferQueue for several threads: one mutex around each call. Whoever
// waits gives it up every `slice`, so that others can submit meanwhile.
//
// Thread safety: thread-safe. Nobody else uses the queue, its tracker or its
// device meanwhile.
class ThreadSafeTransferQueue {
 public:
  // `queue` outlives this.
  explicit ThreadSafeTransferQueue(
      TransferQueue* queue, absl::Duration slice = absl::Microseconds(200))
      : queue_(queue), slice_(slice) {}

  // As those of TransferQueue.
  absl::StatusOr<TransferListId> Submit(absl::Span<const PageTransfer> pages,
                                        TransferPriority priority) {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->Submit(pages, priority);
  }
  absl::Status Cancel(TransferListId id) {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->Cancel(id);
  }
  void Advance(absl::Time deadline) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_->Advance(Sliced(deadline));
  }
  absl::Status Wait(TransferListId id, absl::Time deadline) {
    while (true) {
      std::lock_guard<std::mutex> lock(mutex_);
      const absl::Time until = Sliced(deadline);
      const absl::Status status = queue_->Wait(id, until);
      if (!absl::IsDeadlineExceeded(status) || until == deadline) {
        return status;
      }
    }
  }
  absl::StatusOr<TransferProgress> Progress(TransferListId id) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->Progress(id);
  }
  absl::optional<TransferResult> TakeResult() {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->TakeResult();
  }
  absl::Status NoteDeviceWrite(uint32_t device_page, LayerRange layers) {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->NoteDeviceWrite(device_page, layers);
  }
  bool HostPageBusy(uint32_t page) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->HostPageBusy(page);
  }
  bool DevicePageBusy(uint32_t page) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->DevicePageBusy(page);
  }
  TransferQueueStats Stats() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->Stats();
  }
  absl::Status CheckInvariants() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_->CheckInvariants();
  }

 private:
  absl::Time Sliced(absl::Time deadline) const {
    return std::min(deadline, queue_->Now() + slice_);
  }

  mutable std::mutex mutex_;
  TransferQueue* const queue_ ABSL_PT_GUARDED_BY(mutex_);
  const absl::Duration slice_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_THREAD_SAFE_TRANSFER_QUEUE_H_
