// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a TransferQueue is set up and how it runs; transfer_queue.cc has its
// lists.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/transfers/page_copy.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

// A staging slab has room for one run per so many of its bytes.
constexpr uint64_t kStagingBytesPerRun = 4096;

// What is packed together at most: a share of what is under way, but not less
// than what a launch is worth.
constexpr uint64_t kStagingShare = 2;
constexpr uint64_t kSmallStagingBytes = uint64_t{1} << 18;

absl::Status Check(const TransferQueueOptions& options) {
  if (options.max_attempts == 0 || options.max_pages == 0 ||
      options.channel_depth == 0 || options.max_extent_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a transfer queue with ", options.max_attempts, " attempts, ",
        options.max_pages, " pages, ", options.channel_depth,
        " operations per channel, extents of ", options.max_extent_bytes,
        " bytes; none may be 0"));
  }
  if (!std::isfinite(options.host_bytes_per_second) ||
      options.host_bytes_per_second < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "host_bytes_per_second is ", options.host_bytes_per_second));
  }
  return absl::OkStatus();
}

// The units of kv_scatter that copy within `bank`, and the bank in which they
// look for their lists; of those that look elsewhere than the first, none.
std::vector<uint32_t> ScatterUnits(const DeviceInfo& info, BankId bank,
                                   BankId* list_bank) {
  std::vector<uint32_t> units;
  for (size_t i = 0; i < info.compute_units.size(); ++i) {
    const ComputeUnitInfo& unit = info.compute_units[i];
    if (unit.kernel != kScatterKernel ||
        unit.argument_banks.size() !=
            static_cast<size_t>(KvScatterArgument::kCount)) {
      continue;
    }
    const auto at = [&](KvScatterArgument argument) {
      return unit.argument_banks[static_cast<size_t>(argument)];
    };
    const BankId lists = at(KvScatterArgument::kWork);
    if (at(KvScatterArgument::kSlab) != bank ||
        at(KvScatterArgument::kKv) != bank ||
        at(KvScatterArgument::kStatus) != lists) {
      continue;
    }
    if (units.empty()) *list_bank = lists;
    if (*list_bank == lists) units.push_back(static_cast<uint32_t>(i));
  }
  return units;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransferQueue>> TransferQueue::Create(
    OperationTracker* tracker, const DevicePool* pool,
    const attention::KvPages& host, const TransferQueueOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(Check(options));
  PAGED_KV_RETURN_IF_ERROR(CheckHostPages(host, pool->geometry()));
  if (tracker->device() != pool->device()) {
    return absl::InvalidArgumentError(
        "the pool and the operations of a queue are of different devices");
  }
  // Not make_unique: the constructor is private.
  std::unique_ptr<TransferQueue> queue(
      new TransferQueue(tracker, pool, host, options));
  PAGED_KV_RETURN_IF_ERROR(queue->Setup());
  return queue;
}

absl::Status TransferQueue::Setup() {
  const PoolGeometry& geometry = pool_->geometry();
  Device* device = tracker_->device();
  uint64_t layer_bytes = 0;
  for (uint32_t stripe = 0; stripe < geometry.stripes(); ++stripe) {
    layer_bytes = std::max(layer_bytes, geometry.LayerStride(stripe));
  }
  limits_.min_extent_bytes = options_.min_extent_bytes;
  limits_.max_extent_bytes = options_.max_extent_bytes;
  limits_.max_lone_pieces = options_.max_lone_pieces;
  limits_.max_packed_pieces =
      std::max<uint64_t>(1, options_.staging_bytes / kStagingBytesPerRun);
  const uint64_t staging_bytes =
      options_.staging_bytes / kKvAlignmentBytes * kKvAlignmentBytes;
  if (staging_bytes >= layer_bytes) limits_.staging_bytes = staging_bytes;

  const uint32_t slabs = pool_->num_slabs();
  ring_of_slab_.assign(slabs, -1);
  context_.units.resize(slabs);
  context_.images.resize(slabs);
  absl::flat_hash_map<BankId, int> ring_of_bank;
  for (uint32_t slab = 0; slab < slabs; ++slab) {
    if (pool_->kind() == SlabKind::kHostVisible) {
      PAGED_KV_ASSIGN_OR_RETURN(context_.images[slab],
                                device->HostImage(pool_->slab(slab)));
    }
    const BankId bank = pool_->bank(slab);
    BankId list_bank = kNoBank;
    context_.units[slab] = ScatterUnits(device->info(), bank, &list_bank);
    const uint64_t slab_beats =
        geometry.SlabBytes(pool_->SlabStripe(slab)) / kBeatBytes;
    if (!context_.units[slab].empty() && limits_.staging_bytes > 0 &&
        options_.staging_slabs > 0 && slab_beats < (uint64_t{1} << 32)) {
      const auto [place, is_new] =
          ring_of_bank.emplace(bank, static_cast<int>(rings_.size()));
      if (is_new) {
        PAGED_KV_ASSIGN_OR_RETURN(
            StagingRing ring,
            StagingRing::Create(device, options_.staging_slabs, bank,
                                staging_bytes, list_bank,
                                ScatterList::Bytes(limits_.max_packed_pieces)));
        rings_.push_back(std::move(ring));
      }
      ring_of_slab_[slab] = place->second;
    } else if (pool_->kind() == SlabKind::kDeviceOnly) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a pool without host-side images needs a unit of ", kScatterKernel,
          " that copies within bank ", bank.value(), " and staging slabs of ",
          layer_bytes, " bytes or more"));
    }
  }
  // A piece fits a staging slab, and a descriptor for an extent.
  uint64_t piece_bytes = options_.max_extent_bytes;
  if (!rings_.empty())
    piece_bytes = std::min(piece_bytes, limits_.staging_bytes);
  max_piece_layers_ = static_cast<uint32_t>(std::clamp<uint64_t>(
      piece_bytes / layer_bytes, 1, geometry.shape().layers));

  items_.resize(options_.max_pages);
  for (uint32_t i = options_.max_pages; i > 0; --i)
    free_items_.push_back(i - 1);
  return absl::OkStatus();
}

void TransferQueue::Advance(absl::Time deadline) {
  NoticeResets();
  bool ended = StepBundles();
  ended |= StartBundles();
  if (deadline <= tracker_->device()->Now()) {
    // Somebody else may have left completions in the device.
    tracker_->Pump(deadline);
  } else if (!ended && tracker_->num_pending() > 0) {
    tracker_->Pump(deadline);
  } else {
    return;
  }
  StepBundles();
  StartBundles();
}

void TransferQueue::NoticeResets() {
  if (generation_ == tracker_->generation()) return;
  generation_ = tracker_->generation();
  checksums_.SetAllLost();
}

bool TransferQueue::GiveUp(const TransferBundle& bundle) const {
  return std::all_of(
      bundle.pieces().begin(), bundle.pieces().end(),
      [&](const BundlePiece& piece) { return items_[piece.item].cancelled; });
}

bool TransferQueue::StepBundles() {
  bool ended = false;
  for (auto it = bundles_.begin(); it != bundles_.end();) {
    NoticeResets();
    const absl::optional<absl::Status> status = it->Advance(GiveUp(*it));
    if (!status.has_value()) {
      ++it;
      continue;
    }
    ended = true;
    EndBundle(*it, *status);
    it = bundles_.erase(it);
  }
  return ended;
}

void TransferQueue::EndBundle(const TransferBundle& bundle,
                              const absl::Status& status) {
  std::vector<uint32_t> touched;
  for (const BundlePiece& piece : bundle.pieces()) {
    Item& item = items_[piece.item];
    PAGED_KV_CHECK(item.under_way > 0);
    --item.under_way;
    if (status.ok() && !item.arrived) {
      item.arrived = true;
      item.generation = tracker_->generation();
    }
    if (!status.ok()) {
      if (item.status.ok()) {
        item.status =
            item.cancelled ? absl::CancelledError("cancelled") : status;
      }
      DropReady(piece.item);  // the rest of the page is of no use
    }
    touched.push_back(piece.item);
  }
  // Several pieces may be of one page, which ends once.
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  EndIdle(std::move(touched));
}

bool TransferQueue::HasRoom(TransferDirection direction, bool packed) const {
  const bool upload = direction == TransferDirection::kUpload || packed;
  const size_t pending =
      upload ? tracker_->UploadsPending(tracker_->QuietestUpload())
             : tracker_->DownloadsPending(tracker_->QuietestDownload());
  return pending <= options_.channel_depth;
}

bool TransferQueue::StartBundles() {
  if (!tracker_->health().ok()) {
    FailWaiting(tracker_->health());
    return true;
  }
  bool ended = false;
  for (uint32_t p = 0; p < kTransferPriorities; ++p) {
    const auto priority = static_cast<TransferPriority>(p);
    for (const TransferDirection direction :
         {TransferDirection::kUpload, TransferDirection::kDownload}) {
      while (StartBundle(direction, priority)) {
        // It may have ended at once, with an error, and released others.
        ended |= StepBundles();
      }
    }
  }
  return ended;
}

bool TransferQueue::StartBundle(TransferDirection direction,
                                TransferPriority priority) {
  NoticeResets();
  const bool room_direct = HasRoom(direction, false);
  const bool room_packed = HasRoom(direction, true);
  if (!room_direct && !room_packed) return false;
  const size_t kept =
      priority == TransferPriority::kDecode || options_.staging_slabs < 2 ? 0
                                                                          : 1;
  const auto ways = [&](uint32_t slab) {
    const int ring = ring_of_slab_[slab];
    SlabWays can;
    can.extents = room_direct && pool_->kind() == SlabKind::kHostVisible;
    can.packing = ring >= 0;
    can.staging_free =
        room_packed && ring >= 0 && rings_[ring].num_free() > kept;
    return can;
  };
  ReadyPieces& ready = Ready(direction, priority);
  // Little in the first slabs, for until one of them is there nothing can be
  // read back, and until that nothing spread: with full ones from the start
  // the other direction of the link and the kernels would begin that much
  // later, and end that much later.
  uint64_t under_way = 0;
  for (const TransferBundle& bundle : bundles_) {
    if (bundle.direction() == direction) under_way += bundle.bytes();
  }
  GroupingLimits limits = limits_;
  limits.staging_bytes =
      std::min(limits_.staging_bytes,
               std::max(kSmallStagingBytes, under_way / kStagingShare));
  const PieceGroup group = ready.Take(limits, ways);
  if (group.pieces.empty()) return false;

  const PoolGeometry& geometry = pool_->geometry();
  const uint32_t stripe = pool_->SlabStripe(group.slab);
  const absl::Time now = tracker_->device()->Now();
  std::vector<BundlePiece> pieces;
  for (const ReadyPiece& taken : group.pieces) {
    Item& item = items_[taken.item];
    --item.waiting;
    ++item.under_way;
    if (!item.started) {
      item.started = true;
      const absl::Duration wait = now - lists_.at(item.list).result.submitted;
      const auto p = static_cast<size_t>(priority);
      stats_.wait_total[p] += wait;
      stats_.wait_max[p] = std::max(stats_.wait_max[p], wait);
      ++stats_.waits[p];
    }
    const uint64_t stride = geometry.LayerStride(stripe);
    const uint64_t layer = taken.offset % geometry.PageStride(stripe) / stride;
    pieces.push_back({taken.item,
                      item.transfer.host_page,
                      item.transfer.device_page,
                      {static_cast<uint32_t>(layer),
                       static_cast<uint32_t>(taken.bytes / stride)}});
  }
  StagingRing* ring =
      group.packed ? &rings_[ring_of_slab_[group.slab]] : nullptr;
  bundles_.emplace_back(&context_, direction, group.slab, std::move(pieces),
                        ring);
  return true;
}

void TransferQueue::FailWaiting(const absl::Status& status) {
  std::vector<uint32_t> failed;
  for (uint32_t index = 0; index < items_.size(); ++index) {
    Item& item = items_[index];
    if (!item.in_use || item.waiting == 0) continue;
    DropReady(index);
    if (item.status.ok()) item.status = status;
    failed.push_back(index);
  }
  EndIdle(std::move(failed));
}

absl::Status TransferQueue::CheckInvariants() const {
  size_t in_use = 0, waiting = 0, under_way = 0, flying = 0, packed = 0;
  for (const Item& item : items_) {
    if (!item.in_use) continue;
    ++in_use;
    waiting += item.waiting;
    under_way += item.under_way;
    if (!item.ready && item.waiting + item.under_way > 0) {
      return absl::InternalError("a page moves that waits for another");
    }
    if (item.ready && item.waiting + item.under_way == 0) {
      return absl::InternalError("a page has ended and is not reported");
    }
  }
  for (const TransferBundle& bundle : bundles_) {
    flying += bundle.pieces().size();
    packed += bundle.packed() ? 1 : 0;
  }
  size_t ready = 0, taken = 0, unfinished = 0;
  for (const ReadyPieces& pieces : ready_) ready += pieces.size();
  for (const StagingRing& ring : rings_) taken += ring.size() - ring.num_free();
  for (const auto& [id, list] : lists_) {
    unfinished += list.progress.pages - list.progress.pages_done -
                  list.progress.pages_failed;
  }
  const bool good = in_use == order_.size() && in_use == unfinished &&
                    in_use + free_items_.size() == items_.size() &&
                    waiting == ready && under_way == flying && packed == taken;
  if (good) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      in_use, " pages in use, ", order_.size(), " ordered, ", unfinished,
      " unfinished, ", free_items_.size(), " of ", items_.size(), " free; ",
      waiting, " pieces wait, ", ready, " are ready; ", under_way,
      " under way, ", flying, " in bundles; ", packed, " packed bundles, ",
      taken, " staging slabs taken"));
}

}  // namespace paged_kv::fpga_dma
