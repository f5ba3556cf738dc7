// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_QUEUE_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/transfers/page_checksums.h"
#include "fpga_dma/transfers/ready_pieces.h"
#include "fpga_dma/transfers/staging_ring.h"
#include "fpga_dma/transfers/transfer.h"
#include "fpga_dma/transfers/transfer_bundle.h"
#include "fpga_dma/transfers/transfer_order.h"

namespace paged_kv::fpga_dma {

struct TransferQueueOptions {
  // -- Affects behaviour --

  // How often a descriptor is tried before its pages fail.
  uint32_t max_attempts = 8;
  // Whether packed uploads are compared with the pages that they were scattered
  // to, instead of with the staging slab that they were scattered from. It
  // finds kernels that copy wrongly at once, not when the page comes back, and
  // costs a launch and twice the traffic in the bank.
  bool verify_scattered = false;
  // Page transfers that may be unfinished at a time.
  uint32_t max_pages = 1u << 16;

  // -- Affects speed --

  // Staging slabs per bank of the pool, and the size of each. The last free one
  // is kept for TransferPriority::kDecode, if there are several.
  uint32_t staging_slabs = 4;
  uint64_t staging_bytes = uint64_t{2} << 20;
  // Shorter runs of neighbours are packed. At 13 us per descriptor and 12 GB/s
  // a run of 1 MiB spends 87 % of its time moving bytes.
  uint64_t min_extent_bytes = uint64_t{1} << 20;
  // What a descriptor that nobody waits for may hold up those that come after.
  uint64_t max_extent_bytes = uint64_t{8} << 20;
  // As few pieces as this of one slab move one by one, for a launch of the
  // kernel takes longer.
  size_t max_lone_pieces = 3;
  // Operations that wait at a channel besides the one that it works on.
  uint32_t channel_depth = 1;
  // Who copies and sums pieces; null: the calling thread. Outlives the queue.
  attention::ParallelFor* parallel = nullptr;
  // The rate at which the host copies and sums, told to modelled devices
  // (Device::HostWorks); 0: as if it took no time.
  double host_bytes_per_second = 0;
};

// Moves pages, or some of their layers, between host memory and a device pool.
//
// Transfers are submitted in lists and run in Advance(): neighbours go by one
// descriptor, scattered pieces are packed into a staging slab and spread by the
// kernel kv_scatter on the card, all DMA channels are kept busy, and of those
// that may run the more urgent ones go first. Two transfers that touch the same
// layers of the same page run in the order of submission (see TransferOrder).
// Nothing counts as arrived before its checksum was compared with what reached
// the other side (see TransferBundle), failures are tried again, and what hangs
// is ended by a reset (see OperationTracker).
//
// From Submit() to its result, a list's host pages are not changed (uploads)
// or used (downloads), and its device pages neither read nor written by
// kernels, nor handed to anybody else. A failed or cancelled transfer leaves
// its source as it was, so the page is not lost; only a reset can lose device
// pages, and then downloads of them fail with DataLoss.
//
// Thread safety: thread-compatible; see ThreadSafeTransferQueue. It starts no
// thread and reads no clock but the device's, so that a run on a modelled
// device repeats exactly.
//
// Invariants: a page transfer is in exactly one state (waits for earlier ones,
// ready, under way, finished); a staging slab belongs to at most one bundle;
// submitted = arrived + failed + cancelled + unfinished.
class TransferQueue {
 public:
  // `tracker` and `pool` are of one device and outlive the queue, as does the
  // memory of `host`. Allocates staging slabs where a compute unit of
  // kv_scatter copies within a bank of the pool; elsewhere there are only
  // extents. InvalidArgument for host pages of another shape or order, or
  // options out of range; FailedPrecondition for a pool without host-side
  // images in a bank that no kv_scatter reaches; the device's errors.
  static absl::StatusOr<std::unique_ptr<TransferQueue>> Create(
      OperationTracker* tracker, const DevicePool* pool,
      const attention::KvPages& host, const TransferQueueOptions& options);
  // Cancels what is unfinished and waits for what is under way, if need be by
  // a reset.
  ~TransferQueue();
  TransferQueue(const TransferQueue&) = delete;
  TransferQueue& operator=(const TransferQueue&) = delete;

  // All or nothing. OutOfRange for pages or layers that are not there,
  // InvalidArgument for an empty list, ResourceExhausted if the queue is full.
  absl::StatusOr<TransferListId> Submit(absl::Span<const PageTransfer> pages,
                                        TransferPriority priority);

  // Drops what has not begun and lets the rest come to its end; the result
  // tells which pages that are. Until then all its pages stay busy. NotFound
  // if it is finished.
  absl::Status Cancel(TransferListId id);

  // Starts what can be started and, if something is under way, waits until one
  // operation ends or Now() reaches `deadline`. InfinitePast: does not wait.
  void Advance(absl::Time deadline);
  // Advances until the list is finished. DeadlineExceeded if it is not by then;
  // it goes on. NotFound if it is unknown.
  absl::Status Wait(TransferListId id, absl::Time deadline);

  // Of an unfinished list. NotFound if it is finished.
  absl::StatusOr<TransferProgress> Progress(TransferListId id) const;
  // The next finished list, in the order of finishing; each once.
  absl::optional<TransferResult> TakeResult();

  // A kernel wrote these layers of a device page: its checksum is not known any
  // more. Until a page whose contents a reset has lost is written or uploaded,
  // it cannot be downloaded. OutOfRange as in Submit().
  absl::Status NoteDeviceWrite(uint32_t device_page, LayerRange layers);

  // Whether an unfinished transfer reads or writes the page.
  bool HostPageBusy(uint32_t page) const { return order_.HostPageBusy(page); }
  bool DevicePageBusy(uint32_t page) const {
    return order_.DevicePageBusy(page);
  }
  // The device's clock.
  absl::Time Now() const { return tracker_->device()->Now(); }
  // Page transfers that are not finished.
  size_t unfinished() const { return order_.size(); }

  TransferQueueStats Stats() const;
  // Internal, with the first broken invariant.
  absl::Status CheckInvariants() const;

 private:
  struct Item {
    TransferListId list;
    uint32_t index = 0;  // in the list
    PageTransfer transfer;
    TransferPriority priority = TransferPriority::kDecode;
    bool in_use = false;
    bool ready = false;    // its pieces are or were ready
    bool started = false;  // one of them is or was under way
    bool cancelled = false;
    bool arrived = false;     // a piece of it
    uint32_t waiting = 0;     // pieces that are ready
    uint32_t under_way = 0;   // pieces in bundles
    uint64_t generation = 0;  // of device memory, when its first piece arrived
    absl::Status status;
  };
  // A page of a list that arrived on the device.
  struct Uploaded {
    uint32_t index;  // in the list
    uint64_t generation;
    uint64_t bytes;
  };
  struct List {
    std::vector<uint32_t> items;
    std::vector<Uploaded> uploaded;
    TransferProgress progress;
    TransferResult result;
  };
  // A piece of an item: stripe and layers.
  struct Piece {
    uint32_t slab;
    LayerRange layers;
    ReadyPiece ready;
  };

  TransferQueue(OperationTracker* tracker, const DevicePool* pool,
                const attention::KvPages& host,
                const TransferQueueOptions& options);
  absl::Status Setup();

  std::vector<Piece> PiecesOf(uint32_t item) const;
  ReadyPieces& Ready(TransferDirection direction, TransferPriority priority);
  ReadyPieces& ReadyOf(const Item& item);
  // Its target was reset behind its first piece.
  bool LostSince(const Item& item) const {
    return item.transfer.direction == TransferDirection::kUpload &&
           item.generation != tracker_->generation();
  }
  void MakeReady(uint32_t item);
  void DropReady(uint32_t item);
  // Ends those of `items` that have nothing ready or under way, and what that
  // releases.
  void EndIdle(std::vector<uint32_t> items);
  void End(uint32_t item);
  static void Fail(List* list, uint32_t index, const absl::Status& status);
  // Uploads that a reset has undone before the list's last page ended.
  void FailLostUploads(List* list);

  void NoticeResets();
  bool StepBundles();
  bool StartBundles();
  bool StartBundle(TransferDirection direction, TransferPriority priority);
  void EndBundle(const TransferBundle& bundle, const absl::Status& status);
  bool GiveUp(const TransferBundle& bundle) const;
  void FailWaiting(const absl::Status& status);
  bool HasRoom(TransferDirection direction, bool packed) const;

  OperationTracker* const tracker_;
  const DevicePool* const pool_;
  const TransferQueueOptions options_;
  GroupingLimits limits_;
  uint32_t max_piece_layers_ = 1;

  TransferQueueStats stats_;
  PageChecksums checksums_;
  uint64_t generation_;  // that the checksums know of
  TransferContext context_;
  std::vector<StagingRing> rings_;
  std::vector<int> ring_of_slab_;  // [pool slabs], -1: none

  std::vector<Item> items_;
  std::vector<uint32_t> free_items_;
  absl::flat_hash_map<TransferListId, List> lists_;
  std::deque<TransferResult> results_;
  uint64_t last_id_ = 0;
  TransferOrder order_;
  // [direction * kTransferPriorities + priority]
  std::vector<ReadyPieces> ready_;
  std::list<TransferBundle> bundles_;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_QUEUE_H_
