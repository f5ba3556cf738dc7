// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/decode/page_stream.h"

#include <algorithm>
#include <utility>

#include "fpga_dma/checksum.h"
#include "fpga_dma/transfers/page_copy.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

PageStream::PageStream(OperationTracker* tracker, const DevicePool* pool,
                       const attention::KvPages& host,
                       const PageStreamOptions& options)
    : tracker_(tracker),
      pool_(pool),
      host_(host),
      options_(options),
      slabs_(pool->num_slabs()),
      images_(pool->num_slabs()),
      pages_(pool->geometry().splits()),
      absent_(host.shape.layers, 0),
      unverified_(host.shape.layers, 0),
      spoiled_(host.shape.layers, 0),
      sent_(host.shape.layers, false) {}

PageStream::~PageStream() { GiveUp(); }

void PageStream::GiveUp() {
  to_send_.clear();
  to_verify_.clear();
  while (!under_way_.empty()) {
    tracker_->Pump(absl::InfiniteFuture());
    TakeEnded();
    // What has ended wants to be verified, or sent again.
    to_send_.clear();
    to_verify_.clear();
  }
}

uint64_t PageStream::HalfBytes(uint32_t slab) const {
  return images_[slab].size() / 2;
}

absl::Status PageStream::BeginStep(std::vector<std::vector<uint32_t>> pages) {
  PAGED_KV_CHECK(pages.size() == pages_.size());
  GiveUp();
  pages_ = std::move(pages);
  std::fill(sent_.begin(), sent_.end(), false);
  status_ = absl::OkStatus();
  layer_bytes_ = 0;
  const PoolGeometry& geometry = pool_->geometry();
  for (uint32_t slab = 0; slab < slabs_.size(); ++slab) {
    const uint64_t bytes = pages_[slab % geometry.splits()].size() *
                           geometry.LayerStride(pool_->SlabStripe(slab));
    layer_bytes_ += bytes;
    if (bytes <= HalfBytes(slab)) continue;
    // Half as much again, so that a growing batch does not ask every step.
    const uint64_t half = (bytes + bytes / 2 + 4095) / 4096 * 4096;
    slabs_[slab] = OwnedSlab();
    images_[slab] = {};
    PAGED_KV_ASSIGN_OR_RETURN(
        slabs_[slab], OwnedSlab::Create(tracker_->device(), pool_->bank(slab),
                                        2 * half, SlabKind::kHostVisible));
    PAGED_KV_ASSIGN_OR_RETURN(images_[slab],
                              tracker_->device()->HostImage(slabs_[slab].id()));
  }
  return absl::OkStatus();
}

void PageStream::Send(uint32_t layer) {
  if (empty() || sent_[layer]) return;
  sent_[layer] = true;
  const size_t before = to_send_.size();
  const PoolGeometry& geometry = pool_->geometry();
  for (uint32_t slab = 0; slab < slabs_.size(); ++slab) {
    const auto pages =
        static_cast<uint32_t>(pages_[slab % geometry.splits()].size());
    const uint64_t stride = geometry.LayerStride(pool_->SlabStripe(slab));
    const auto most = static_cast<uint32_t>(
        std::max<uint64_t>(1, options_.max_chunk_bytes / stride));
    // Even ones: the setup of the next does not hide behind a short one.
    const uint32_t chunks = (pages + most - 1) / most;
    for (uint32_t i = 0; i < chunks; ++i) {
      const auto first = static_cast<uint32_t>(uint64_t{i} * pages / chunks);
      const auto end =
          static_cast<uint32_t>((uint64_t{i} + 1) * pages / chunks);
      to_send_.push_back({layer, slab, first, end - first, 0, false, 0});
    }
  }
  absent_[layer] = static_cast<uint32_t>(to_send_.size() - before);
  unverified_[layer] = absent_[layer];
  spoiled_[layer] = 0;
  // From one bank to the next, so that chunks on their way up, those on their
  // way back and the kernels wait little for each other.
  std::stable_sort(
      to_send_.begin() + static_cast<std::ptrdiff_t>(before), to_send_.end(),
      [](const Chunk& a, const Chunk& b) { return a.first < b.first; });
}

bool PageStream::Arrived(uint32_t layer) const {
  return empty() || (sent_[layer] && absent_[layer] == 0);
}

bool PageStream::Verified(uint32_t layer) const {
  return empty() || (sent_[layer] && unverified_[layer] == 0);
}

SlabRange PageStream::Range(const Chunk& chunk) const {
  const uint64_t stride =
      pool_->geometry().LayerStride(pool_->SlabStripe(chunk.slab));
  return {slabs_[chunk.slab].id(),
          chunk.layer % 2 * HalfBytes(chunk.slab) + chunk.first * stride,
          chunk.count * stride};
}

KernelArgument PageStream::Address(uint32_t index, uint32_t layer) const {
  return AddressArgument(slabs_[index].id(), layer % 2 * HalfBytes(index));
}

void PageStream::Pack(Chunk* chunk) {
  const PoolGeometry& geometry = pool_->geometry();
  const uint32_t stripe = pool_->SlabStripe(chunk->slab);
  const SlabRange range = Range(*chunk);
  const absl::Span<std::byte> image =
      images_[chunk->slab].subspan(range.offset, range.bytes);
  const std::vector<uint32_t>& pages = pages_[chunk->slab % geometry.splits()];
  for (uint32_t i = 0; i < chunk->count; ++i) {
    GatherLayer(host_, geometry, pages[chunk->first + i], chunk->layer, stripe,
                image.data() + i * geometry.LayerStride(stripe));
  }
  chunk->checksum = Crc32c(image);
  chunk->packed = true;
  if (options_.host_bytes_per_second > 0) {
    tracker_->device()->HostWorks(absl::Seconds(
        static_cast<double>(range.bytes) / options_.host_bytes_per_second));
  }
}

void PageStream::Advance(Urgent urgent) {
  TakeEnded();
  if (urgent != Urgent::kDownload) {
    StartNext(&to_verify_, /*verifies=*/true, /*first_channel=*/0);
  }
  const bool one_is_left =
      urgent != Urgent::kNothing && tracker_->device()->info().channels > 1;
  StartNext(&to_send_, /*verifies=*/false, one_is_left ? 1 : 0);
  PackNext();
}

// While the channels are busy, so that none waits for it.
void PageStream::PackNext() {
  if (status_.ok() && !to_send_.empty() && !to_send_.front().packed) {
    Pack(&to_send_.front());
  }
}

void PageStream::StartNext(std::deque<Chunk>* waiting, bool verifies,
                           uint32_t first_channel) {
  for (uint32_t channel = first_channel;
       channel < tracker_->device()->info().channels; ++channel) {
    if (waiting->empty() || !status_.ok()) return;
    if ((verifies ? tracker_->DownloadsPending(channel)
                  : tracker_->UploadsPending(channel)) > 0) {
      continue;
    }
    Chunk chunk = waiting->front();
    waiting->pop_front();
    if (!verifies && !chunk.packed) Pack(&chunk);
    const absl::StatusOr<OpId> op =
        verifies ? tracker_->StartDownload(Range(chunk), channel)
                 : tracker_->StartUpload(Range(chunk), channel);
    if (op.ok()) {
      under_way_.push_back({chunk, *op, verifies});
    } else {
      Settle({chunk, OpId(), verifies}, op.status());
    }
  }
}

void PageStream::TakeEnded() {
  for (size_t i = 0; i < under_way_.size();) {
    const absl::optional<Completion> completion =
        tracker_->Take(under_way_[i].op);
    if (!completion.has_value()) {
      ++i;
      continue;
    }
    const UnderWay ended = under_way_[i];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!ended.verifies) {
      events_.push_back(
          {ended.chunk.layer, completion->started, completion->finished});
    }
    Settle(ended, completion->status);
  }
}

void PageStream::Settle(const UnderWay& ended, const absl::Status& status) {
  Chunk chunk = ended.chunk;
  absl::Status result = status;
  if (result.ok() && !ended.verifies) {
    --absent_[chunk.layer];
    to_verify_.push_back(chunk);
    return;
  }
  if (result.ok()) {
    const SlabRange range = Range(chunk);
    if (Crc32c(images_[chunk.slab].subspan(range.offset, range.bytes)) ==
        chunk.checksum) {
      --unverified_[chunk.layer];
      return;
    }
    result = absl::DataLossError(
        "what a layer's pages read back as is not "
        "what was sent");
  }
  if (ended.verifies) {
    ++absent_[chunk.layer];
    ++spoiled_[chunk.layer];
  }
  chunk.packed = false;
  if (++chunk.attempts < options_.max_attempts) {
    to_send_.push_front(chunk);
  } else {
    status_.Update(result);
  }
}

std::vector<PageStream::Event> PageStream::TakeEvents() {
  return std::exchange(events_, {});
}

}  // namespace paged_kv::fpga_dma
