// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/transfer_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/transfers/page_copy.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

TransferQueue::TransferQueue(OperationTracker* tracker, const DevicePool* pool,
                             const attention::KvPages& host,
                             const TransferQueueOptions& options)
    : tracker_(tracker),
      pool_(pool),
      options_(options),
      checksums_(pool->geometry()),
      generation_(tracker->generation()),
      ready_(size_t{kTransferDirections} * kTransferPriorities,
             ReadyPieces(pool->num_slabs())) {
  context_.tracker = tracker;
  context_.pool = pool;
  context_.host = host;
  context_.checksums = &checksums_;
  context_.stats = &stats_;
  context_.parallel = options.parallel;
  context_.host_bytes_per_second = options.host_bytes_per_second;
  context_.max_attempts = options.max_attempts;
  context_.verify_scattered = options.verify_scattered;
}

TransferQueue::~TransferQueue() {
  std::vector<TransferListId> unfinished;
  for (const auto& [id, list] : lists_) unfinished.push_back(id);
  for (TransferListId id : unfinished) Cancel(id).IgnoreError();
  // Each operation ends by itself or by its timeout.
  while (!bundles_.empty()) Advance(absl::InfiniteFuture());
}

absl::StatusOr<TransferListId> TransferQueue::Submit(
    absl::Span<const PageTransfer> pages, TransferPriority priority) {
  if (pages.empty()) {
    return absl::InvalidArgumentError("a list without page transfers");
  }
  if (pages.size() > free_items_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a list of ", pages.size(), " page transfers, room for ",
                     free_items_.size(), " of ", options_.max_pages));
  }
  for (const PageTransfer& page : pages) {
    PAGED_KV_RETURN_IF_ERROR(pool_->CheckRange(page.device_page, page.layers));
    if (page.host_page >= context_.host.num_pages) {
      return absl::OutOfRangeError(absl::StrCat(
          "host page ", page.host_page, " of ", context_.host.num_pages));
    }
  }
  const TransferListId id(++last_id_);
  List& list = lists_[id];
  list.result.id = id;
  list.result.submitted = tracker_->device()->Now();
  list.progress.pages = pages.size();
  const uint64_t layer_bytes =
      pool_->geometry().HeadBytes() * pool_->geometry().shape().kv_heads;
  for (const PageTransfer& page : pages) {
    const uint32_t index = free_items_.back();
    free_items_.pop_back();
    Item& item = items_[index];
    item = Item();
    item.list = id;
    item.index = static_cast<uint32_t>(list.items.size());
    item.transfer = page;
    item.priority = priority;
    item.in_use = true;
    list.items.push_back(index);
    list.progress.bytes += layer_bytes * page.layers.count;
    if (order_.Add(index, page) == 0) MakeReady(index);
  }
  return id;
}

std::vector<TransferQueue::Piece> TransferQueue::PiecesOf(
    uint32_t index) const {
  const PageTransfer& transfer = items_[index].transfer;
  const PoolGeometry& geometry = pool_->geometry();
  std::vector<Piece> pieces;
  for (uint32_t stripe = 0; stripe < geometry.stripes(); ++stripe) {
    LayerRange layers = transfer.layers;
    while (layers.count > 0) {
      const LayerRange part = {layers.first,
                               std::min(layers.count, max_piece_layers_)};
      const SlabRange range = pool_->Range(transfer.device_page, stripe, part);
      pieces.push_back({pool_->SlabIndex(transfer.device_page, stripe),
                        part,
                        {range.offset, index, range.bytes}});
      layers = {part.end(), layers.count - part.count};
    }
  }
  return pieces;
}

ReadyPieces& TransferQueue::Ready(TransferDirection direction,
                                  TransferPriority priority) {
  return ready_[static_cast<size_t>(direction) * kTransferPriorities +
                static_cast<size_t>(priority)];
}

ReadyPieces& TransferQueue::ReadyOf(const Item& item) {
  return Ready(item.transfer.direction, item.priority);
}

void TransferQueue::MakeReady(uint32_t index) {
  Item& item = items_[index];
  item.ready = true;
  for (const Piece& piece : PiecesOf(index)) {
    ReadyOf(item).Add(piece.slab, piece.ready);
    ++item.waiting;
  }
}

void TransferQueue::DropReady(uint32_t index) {
  Item& item = items_[index];
  if (item.waiting == 0) return;
  for (const Piece& piece : PiecesOf(index)) {
    if (ReadyOf(item).Remove(piece.slab, piece.ready)) --item.waiting;
  }
  PAGED_KV_CHECK(item.waiting == 0);
}

absl::Status TransferQueue::Cancel(TransferListId id) {
  const auto found = lists_.find(id);
  if (found == lists_.end()) {
    return absl::NotFoundError(
        absl::StrCat("transfer ", id.value(), " is finished or unknown"));
  }
  const std::vector<uint32_t> items = found->second.items;
  std::vector<uint32_t> stopped;
  for (uint32_t index : items) {
    Item& item = items_[index];
    if (!item.in_use || item.list != id || item.cancelled) continue;
    item.cancelled = true;
    if (item.ready && item.waiting > 0) {
      if (item.status.ok()) item.status = absl::CancelledError("cancelled");
      DropReady(index);
    }
    // One that waits for others ends when these release it: until then it keeps
    // its place in the order.
    if (item.ready) stopped.push_back(index);
  }
  EndIdle(std::move(stopped));
  return absl::OkStatus();
}

void TransferQueue::EndIdle(std::vector<uint32_t> items) {
  std::vector<TransferOrder::Released> released;
  while (!items.empty()) {
    const uint32_t index = items.back();
    items.pop_back();
    Item& item = items_[index];
    if (item.waiting + item.under_way > 0) continue;
    if (item.status.ok() && LostSince(item)) {
      item.status = absl::DataLossError("a part of it was lost to a reset");
    }
    const bool arrived = item.status.ok();
    End(index);
    released.clear();
    order_.Finish(index, arrived, &released);
    items_[index].in_use = false;
    free_items_.push_back(index);
    for (const TransferOrder::Released& next : released) {
      Item& later = items_[next.item];
      if (later.cancelled) {
        later.status = absl::CancelledError("cancelled");
      } else if (next.spoiled) {
        later.status = absl::AbortedError(
            "an earlier transfer that was to write its source failed");
      } else {
        MakeReady(next.item);
        continue;
      }
      later.ready = true;
      items.push_back(next.item);
    }
  }
}

void TransferQueue::End(uint32_t index) {
  const Item& item = items_[index];
  const auto found = lists_.find(item.list);
  PAGED_KV_CHECK(found != lists_.end());
  List& list = found->second;
  const bool up = item.transfer.direction == TransferDirection::kUpload;
  const uint64_t bytes = pool_->geometry().HeadBytes() *
                         pool_->geometry().shape().kv_heads *
                         item.transfer.layers.count;
  if (item.status.ok()) {
    ++list.progress.pages_done;
    list.progress.bytes_done += bytes;
    ++(up ? stats_.pages_up : stats_.pages_down);
    (up ? stats_.bytes_up : stats_.bytes_down) += bytes;
    if (up) list.uploaded.push_back({item.index, item.generation, bytes});
  } else {
    ++list.progress.pages_failed;
    ++(absl::IsCancelled(item.status) ? stats_.pages_cancelled
                                      : stats_.pages_failed);
    Fail(&list, item.index, item.status);
  }
  if (list.progress.pages_done + list.progress.pages_failed <
      list.progress.pages) {
    return;
  }
  FailLostUploads(&list);
  list.result.finished = tracker_->device()->Now();
  list.result.generation = tracker_->generation();
  results_.push_back(std::move(list.result));
  lists_.erase(found);
}

void TransferQueue::Fail(List* list, uint32_t index,
                         const absl::Status& status) {
  std::vector<uint32_t>& failed = list->result.failed;
  failed.push_back(index);
  // Kept sorted so that front() is the first that failed.
  std::inplace_merge(failed.begin(), failed.end() - 1, failed.end());
  if (failed.front() == index) list->result.status = status;
}

void TransferQueue::FailLostUploads(List* list) {
  for (const Uploaded& page : list->uploaded) {
    if (page.generation == tracker_->generation()) continue;
    --stats_.pages_up;
    stats_.bytes_up -= page.bytes;
    ++stats_.pages_failed;
    Fail(list, page.index,
         absl::DataLossError("it arrived and was lost to a reset"));
  }
}

absl::Status TransferQueue::Wait(TransferListId id, absl::Time deadline) {
  if (id.value() == 0 || id.value() > last_id_) {
    return absl::NotFoundError(
        absl::StrCat("transfer ", id.value(), " is unknown"));
  }
  while (lists_.contains(id)) {
    if (tracker_->device()->Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("transfer ", id.value(), " is not finished"));
    }
    Advance(deadline);
  }
  return absl::OkStatus();
}

absl::StatusOr<TransferProgress> TransferQueue::Progress(
    TransferListId id) const {
  const auto found = lists_.find(id);
  if (found == lists_.end()) {
    return absl::NotFoundError(
        absl::StrCat("transfer ", id.value(), " is finished or unknown"));
  }
  return found->second.progress;
}

absl::optional<TransferResult> TransferQueue::TakeResult() {
  if (results_.empty()) return absl::nullopt;
  TransferResult result = std::move(results_.front());
  results_.pop_front();
  return result;
}

absl::Status TransferQueue::NoteDeviceWrite(uint32_t device_page,
                                            LayerRange layers) {
  PAGED_KV_RETURN_IF_ERROR(pool_->CheckRange(device_page, layers));
  NoticeResets();
  checksums_.SetWritten(device_page, layers);
  return absl::OkStatus();
}

TransferQueueStats TransferQueue::Stats() const {
  TransferQueueStats stats = stats_;
  stats.timeouts = tracker_->timeouts();
  stats.resets = tracker_->resets();
  return stats;
}

}  // namespace paged_kv::fpga_dma
