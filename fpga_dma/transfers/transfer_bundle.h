// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_BUNDLE_H_
#define PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_BUNDLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "attention/parallel_for.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/transfers/page_checksums.h"
#include "fpga_dma/transfers/scatter_list.h"
#include "fpga_dma/transfers/staging_ring.h"
#include "fpga_dma/transfers/transfer.h"

namespace paged_kv::fpga_dma {

// What all bundles of a queue share; owned by the queue.
struct TransferContext {
  OperationTracker* tracker = nullptr;
  const DevicePool* pool = nullptr;
  attention::KvPages host;
  PageChecksums* checksums = nullptr;
  TransferQueueStats* stats = nullptr;
  attention::ParallelFor* parallel = nullptr;
  double host_bytes_per_second = 0;  // 0: the host's work is not charged
  uint32_t max_attempts = 1;
  bool verify_scattered = false;
  // Host-side images of the pool's slabs, empty without. [pool slabs]
  std::vector<absl::Span<std::byte>> images;
  // Compute units of kv_scatter that reach a slab's bank. [pool slabs][units]
  std::vector<std::vector<uint32_t>> units;
  uint32_t next_tag = 1;
};

// Part of a page in one stripe.
struct BundlePiece {
  uint32_t item = 0;  // the queue's name of the page transfer
  uint32_t host_page = 0;
  uint32_t device_page = 0;
  LayerRange layers;
};

// Pieces of one slab that move together: neighbours by one descriptor between
// the slab and its image, or any by one descriptor through a staging slab that
// kv_scatter empties or fills. From the first operation to the last check, and
// again if something goes wrong:
//
//   upload, extent    upload, read back
//   upload, packed    upload, read back, scatter, read the status word; or
//                     upload, read the lists back, scatter, gather, read back
//   download, extent  download (again if no checksum is known)
//   download, packed  upload the lists, gather, download (all of it again if no
//                     checksum is known)
//
// What is read back is compared with the checksums of what was to be written,
// so that a bit that flips on the way is found. The short way of packed uploads
// compares what reached the staging slab and trusts the card to copy it (a
// wrong copy is found when the page comes back); the long way compares the
// pages, for a second launch and twice the traffic in the bank. Where none is
// known because a kernel wrote the page, two readings have to agree.
//
// Thread safety: thread-compatible.
class TransferBundle {
 public:
  // An extent if `ring` is null. The bundle takes a slab of the ring and gives
  // it back when it is destroyed. `context` and `ring` outlive it.
  TransferBundle(TransferContext* context, TransferDirection direction,
                 uint32_t slab, std::vector<BundlePiece> pieces,
                 StagingRing* ring);
  ~TransferBundle();
  TransferBundle(const TransferBundle&) = delete;
  TransferBundle& operator=(const TransferBundle&) = delete;

  // Does what can be done now. Nothing while operations are under way; in the
  // end how it went, once. Before that, no byte of a host page was written.
  // `give_up`: do not try again.
  absl::optional<absl::Status> Advance(bool give_up);

  TransferDirection direction() const { return direction_; }
  const std::vector<BundlePiece>& pieces() const { return pieces_; }
  uint64_t bytes() const { return data_bytes_; }
  bool packed() const { return ring_ != nullptr; }

 private:
  enum class Stage : uint8_t {
    kBegin,
    kUpload,       // extent, or staging slab and lists
    kReadStaging,  // of a packed upload: lists, and data if not kGather
    kScatter,
    kReadStatus,
    kUploadLists,  // of a packed download
    kGather,       // of that, and of an upload if pages are to be verified
    kReadBack,     // the upload, or the download itself
    kDone,
  };
  struct LayerSum {
    uint32_t checksum = 0;
    bool known = false;
  };

  absl::Status Start(Stage stage);
  absl::Status StartData(bool upload);
  absl::Status StartLists(bool upload);
  absl::Status StartDma(bool upload, SlabRange range);
  absl::Status StartScatter(bool gather);
  // How the operations of the stage ended; nothing before all have.
  absl::optional<absl::Status> OperationsEnded();
  // What follows when `stage_` has succeeded; kDone after a good check.
  absl::StatusOr<Stage> Next();
  Stage First() const;

  void Prepare();
  void WriteLists();
  absl::Status CheckNotLost() const;
  absl::Status CheckLists() const;
  absl::StatusOr<Stage> CheckRead();
  void Complete();
  // Calls run(piece, layer in the piece, index of its sum, its bytes in
  // the image) for every layer of every piece, in parallel if the queue may.
  template <typename Run>
  void ForEachLayer(Run run);
  void ChargeHost();

  uint32_t stripe() const { return context_->pool->SlabStripe(slab_); }
  absl::Span<std::byte> Data() const;  // image of extent or staging slab
  absl::Span<std::byte> Lists() const;

  TransferContext* const context_;
  const TransferDirection direction_;
  const uint32_t slab_;
  const std::vector<BundlePiece> pieces_;
  StagingRing* const ring_;
  uint32_t ring_index_ = 0;

  std::vector<uint64_t> first_sum_;  // [pieces], index of its first layer
  std::vector<LayerSum> sums_;       // [layers of all pieces]
  uint32_t lists_sum_ = 0;
  ScatterPool scatter_pool_;
  uint64_t data_bytes_ = 0;
  bool second_reading_ = false;

  Stage stage_ = Stage::kBegin;
  std::vector<OpId> ops_;      // of the stage, not yet ended
  absl::Status stage_status_;  // of those that have
  uint32_t tag_ = 0;
  uint32_t attempts_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace paged_kv::fpga_dma

#endif  // PAGED_KV_FPGA_DMA_TRANSFERS_TRANSFER_BUNDLE_H_
