// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The words in which one talks to a TransferQueue.

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fpga_dma/pool_geometry.h"
#include "paged_kv/types.h"

namespace paged_kv::fpga_dma {

enum class TransferDirection : uint8_t {
  kUpload,    // host page to device page
  kDownload,  // device page to host page
};
inline constexpr uint32_t kTransferDirections = 2;

// Whose pieces go first when a channel is free.
enum class TransferPriority : uint8_t {
  kDecode,     // a step waits for it
  kPrefetch,   // a step will: hand-off, swap-in
  kWriteBack,  // nobody waits
};
inline constexpr uint32_t kTransferPriorities = 3;

// One page's way, or that of some of its layers.
struct PageTransfer {
  TransferDirection direction = TransferDirection::kUpload;
  uint32_t host_page = 0;
  uint32_t device_page = 0;
  LayerRange layers;
};

// A list of page transfers that was submitted; never reused.
using TransferListId = StrongId<struct TransferListIdTag, uint64_t>;

struct TransferResult {
  TransferListId id;
  // OK if every page arrived, and of those that went up none was lost to a
  // reset by now; else why the first of `failed` did not. Cancelled, DataLoss
  // (the device's copy was lost, or stayed corrupt), Internal, DeadlineExceeded
  // or Unavailable (the device), Aborted (an earlier transfer that was to write
  // its source failed).
  absl::Status status;
  // Indices in the submitted list, rising. Their sources are as they were;
  // their targets, of those layers, hold nothing of use.
  std::vector<uint32_t> failed;
  absl::Time submitted;
  absl::Time finished;
  // OperationTracker::generation() when it finished: once that has moved on,
  // what went up is gone.
  uint64_t generation = 0;
};

struct TransferProgress {
  size_t pages = 0;
  size_t pages_done = 0;  // arrived
  size_t pages_failed = 0;
  uint64_t bytes = 0;  // K, V and scales, without padding
  uint64_t bytes_done = 0;
};

struct TransferQueueStats {
  uint64_t pages_up = 0, pages_down = 0;  // page transfers that arrived
  uint64_t pages_failed = 0;
  uint64_t pages_cancelled = 0;
  // K, V and scales that arrived, without padding, lists and verification.
  uint64_t bytes_up = 0, bytes_down = 0;
  // DMA operations that carried them, and those that only verified, carried
  // work lists or fetched status words.
  uint64_t descriptors_up = 0, descriptors_down = 0;
  uint64_t descriptors_other = 0;
  uint64_t extents = 0;       // descriptors of neighbours, without packing
  uint64_t packed_slabs = 0;  // descriptors of packed pieces
  uint64_t launches = 0;      // of kv_scatter
  uint64_t corruptions = 0;   // checksums that did not agree
  uint64_t retries = 0;
  uint64_t timeouts = 0;
  uint64_t resets = 0;
  // From Submit() to the first operation, by priority.
  absl::Duration wait_total[kTransferPriorities];
  absl::Duration wait_max[kTransferPriorities];
  uint64_t waits[kTransferPriorities] = {};

  double BytesPerDescriptor() const {
    const uint64_t n = descriptors_up + descriptors_down;
    if (n == 0) return 0.0;
    return static_cast<double>(bytes_up + bytes_down) / static_cast<double>(n);
  }
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_H_
