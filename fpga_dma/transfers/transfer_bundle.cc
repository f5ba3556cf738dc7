// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/transfer_bundle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/checksum.h"
#include "fpga_dma/transfers/page_copy.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

// Trying again cannot help.
bool IsOurMistake(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

TransferBundle::TransferBundle(TransferContext* context,
                               TransferDirection direction, uint32_t slab,
                               std::vector<BundlePiece> pieces,
                               StagingRing* ring)
    : context_(context),
      direction_(direction),
      slab_(slab),
      pieces_(std::move(pieces)),
      ring_(ring) {
  const PoolGeometry& geometry = context_->pool->geometry();
  uint64_t layers = 0;
  for (const BundlePiece& piece : pieces_) {
    first_sum_.push_back(layers);
    layers += piece.layers.count;
  }
  sums_.resize(layers);
  data_bytes_ = layers * geometry.LayerStride(stripe());
  if (ring_ != nullptr) {
    ring_index_ = ring_->Take();
    scatter_pool_ = {context_->pool->slab(slab_), geometry.SplitPages(),
                     geometry.PageStride(stripe()) / kBeatBytes};
  }
}

TransferBundle::~TransferBundle() {
  if (ring_ != nullptr) ring_->GiveBack(ring_index_);
}

absl::Span<std::byte> TransferBundle::Data() const {
  if (ring_ != nullptr) return ring_->data(ring_index_).first(data_bytes_);
  return context_->images[slab_].subspan(
      context_->pool->geometry().Offset(pieces_[0].device_page, stripe(),
                                        pieces_[0].layers.first),
      data_bytes_);
}

absl::Span<std::byte> TransferBundle::Lists() const {
  return ring_->lists(ring_index_).first(ScatterList::Bytes(pieces_.size()));
}

template <typename Run>
void TransferBundle::ForEachLayer(Run run) {
  const uint64_t stride = context_->pool->geometry().LayerStride(stripe());
  std::byte* data = Data().data();
  const auto one_piece = [&](size_t i, size_t /*worker*/) {
    for (uint32_t layer = 0; layer < pieces_[i].layers.count; ++layer) {
      const uint64_t sum = first_sum_[i] + layer;
      run(pieces_[i], pieces_[i].layers.first + layer, &sums_[sum],
          data + sum * stride);
    }
  };
  if (context_->parallel != nullptr) {
    context_->parallel->Run(pieces_.size(), one_piece);
  } else {
    for (size_t i = 0; i < pieces_.size(); ++i) one_piece(i, 0);
  }
}

void TransferBundle::ChargeHost() {
  if (context_->host_bytes_per_second <= 0) return;
  context_->tracker->device()->HostWorks(absl::Seconds(
      static_cast<double>(data_bytes_) / context_->host_bytes_per_second));
}

absl::optional<absl::Status> TransferBundle::Advance(bool give_up) {
  while (true) {
    absl::Status status;
    Stage next = First();
    if (stage_ == Stage::kBegin) {
      Prepare();
      PAGED_KV_RETURN_IF_ERROR(CheckNotLost());
    } else {
      const absl::optional<absl::Status> ended = OperationsEnded();
      if (!ended.has_value()) return absl::nullopt;
      status = *ended;
      // What was read before the contents were lost may still be good.
      const bool last_read = direction_ == TransferDirection::kDownload &&
                             stage_ == Stage::kReadBack;
      if (status.ok() && !last_read &&
          generation_ != context_->tracker->generation()) {
        status = absl::DataLossError("device memory was lost to a reset");
      }
      if (status.ok()) {
        const absl::StatusOr<Stage> after = Next();
        status = after.status();
        if (after.ok()) next = *after;
      }
    }
    if (status.ok() && next == Stage::kDone) {
      Complete();
      return absl::OkStatus();
    }
    if (status.ok()) {
      status = Start(next);
      if (status.ok()) return absl::nullopt;
      // The slabs are in use until those that were started have ended.
      if (!ops_.empty()) {
        stage_status_ = status;
        return absl::nullopt;
      }
    }

    ++attempts_;
    const bool lost = direction_ == TransferDirection::kDownload &&
                      generation_ != context_->tracker->generation();
    if (IsOurMistake(status) || lost || give_up ||
        attempts_ >= context_->max_attempts) {
      return absl::Status(
          lost ? absl::StatusCode::kDataLoss : status.code(),
          absl::StrCat(status.message(), " (attempt ", attempts_, ")"));
    }
    ++context_->stats->retries;
    stage_ = Stage::kBegin;
    second_reading_ = false;
  }
}

TransferBundle::Stage TransferBundle::First() const {
  if (direction_ == TransferDirection::kUpload) return Stage::kUpload;
  return ring_ == nullptr ? Stage::kReadBack : Stage::kUploadLists;
}

absl::optional<absl::Status> TransferBundle::OperationsEnded() {
  for (size_t i = 0; i < ops_.size();) {
    const absl::optional<Completion> completion =
        context_->tracker->Take(ops_[i]);
    if (!completion.has_value()) {
      ++i;
      continue;
    }
    if (stage_status_.ok()) stage_status_ = completion->status;
    ops_.erase(ops_.begin() + static_cast<ptrdiff_t>(i));
  }
  if (!ops_.empty()) return absl::nullopt;
  return stage_status_;
}

absl::Status TransferBundle::Start(Stage stage) {
  stage_ = stage;
  stage_status_ = absl::OkStatus();
  TransferQueueStats& stats = *context_->stats;
  switch (stage) {
    case Stage::kUpload:
      ++stats.descriptors_up;
      ++(ring_ == nullptr ? stats.extents : stats.packed_slabs);
      if (ring_ != nullptr) PAGED_KV_RETURN_IF_ERROR(StartLists(true));
      return StartData(true);
    case Stage::kReadStaging:
      // Data first: behind the lists it would wait for what the other channel
      // reads, and the link for its set-up.
      if (!context_->verify_scattered) {
        ++stats.descriptors_other;
        PAGED_KV_RETURN_IF_ERROR(StartData(false));
      }
      return StartLists(false);
    case Stage::kReadStatus:
      return StartLists(false);
    case Stage::kUploadLists:
      return StartLists(true);
    case Stage::kScatter:
      return StartScatter(false);
    case Stage::kGather:
      return StartScatter(true);
    case Stage::kReadBack:
      if (direction_ == TransferDirection::kUpload || second_reading_) {
        ++stats.descriptors_other;
      } else {
        ++stats.descriptors_down;
        ++(ring_ == nullptr ? stats.extents : stats.packed_slabs);
      }
      if (ring_ != nullptr) PAGED_KV_RETURN_IF_ERROR(StartLists(false));
      return StartData(false);
    case Stage::kBegin:
    case Stage::kDone:
      break;
  }
  PAGED_KV_CHECK(false);
}

absl::Status TransferBundle::StartData(bool upload) {
  if (ring_ != nullptr) {
    return StartDma(upload, {ring_->slabs(ring_index_).data, 0, data_bytes_});
  }
  return StartDma(
      upload, {context_->pool->slab(slab_),
               context_->pool->geometry().Offset(
                   pieces_[0].device_page, stripe(), pieces_[0].layers.first),
               data_bytes_});
}

absl::Status TransferBundle::StartLists(bool upload) {
  ++context_->stats->descriptors_other;
  return StartDma(upload, {ring_->slabs(ring_index_).lists, 0,
                           ScatterList::Bytes(pieces_.size())});
}

absl::Status TransferBundle::StartDma(bool upload, SlabRange range) {
  OperationTracker& tracker = *context_->tracker;
  PAGED_KV_ASSIGN_OR_RETURN(
      const OpId op,
      upload ? tracker.StartUpload(range, tracker.QuietestUpload())
             : tracker.StartDownload(range, tracker.QuietestDownload()));
  ops_.push_back(op);
  return absl::OkStatus();
}

absl::Status TransferBundle::StartScatter(bool gather) {
  OperationTracker& tracker = *context_->tracker;
  const std::vector<uint32_t>& units = context_->units[slab_];
  const uint32_t unit = *std::min_element(
      units.begin(), units.end(), [&](uint32_t a, uint32_t b) {
        return tracker.KernelsPending(a) < tracker.KernelsPending(b);
      });
  const StagingSlabs staging = ring_->slabs(ring_index_);
  const uint64_t beats = data_bytes_ / kBeatBytes;
  ++context_->stats->launches;
  const std::vector<KernelArgument> arguments =
      gather ? ScatterList::GatherArguments(staging, pieces_.size(), beats,
                                            scatter_pool_)
             : ScatterList::ScatterArguments(staging, pieces_.size(), beats,
                                             scatter_pool_);
  PAGED_KV_ASSIGN_OR_RETURN(const OpId op,
                            tracker.StartKernel(unit, arguments));
  ops_.push_back(op);
  return absl::OkStatus();
}

absl::StatusOr<TransferBundle::Stage> TransferBundle::Next() {
  const bool upload = direction_ == TransferDirection::kUpload;
  switch (stage_) {
    case Stage::kUpload:
      return ring_ == nullptr ? Stage::kReadBack : Stage::kReadStaging;
    case Stage::kReadStaging:
      PAGED_KV_RETURN_IF_ERROR(CheckLists());
      if (!context_->verify_scattered) {
        PAGED_KV_RETURN_IF_ERROR(CheckRead().status());
      }
      return Stage::kScatter;
    case Stage::kReadStatus:
      PAGED_KV_RETURN_IF_ERROR(
          ScatterList::CheckScatter(Lists(), pieces_.size(), tag_));
      return Stage::kDone;
    case Stage::kScatter:
      return context_->verify_scattered ? Stage::kGather : Stage::kReadStatus;
    case Stage::kUploadLists:
      return Stage::kGather;
    case Stage::kGather:
      return Stage::kReadBack;
    case Stage::kReadBack:
      if (ring_ != nullptr) {
        PAGED_KV_RETURN_IF_ERROR(CheckLists());
        if (upload) {
          PAGED_KV_RETURN_IF_ERROR(
              ScatterList::CheckScatter(Lists(), pieces_.size(), tag_));
        }
        PAGED_KV_RETURN_IF_ERROR(
            ScatterList::CheckGather(Lists(), pieces_.size(), tag_));
      }
      return CheckRead();
    case Stage::kBegin:
    case Stage::kDone:
      break;
  }
  PAGED_KV_CHECK(false);
}

void TransferBundle::Prepare() {
  generation_ = context_->tracker->generation();
  const PoolGeometry& geometry = context_->pool->geometry();
  PageChecksums& checksums = *context_->checksums;
  if (ring_ != nullptr) WriteLists();
  const uint64_t bytes = geometry.LayerBytes(stripe());
  const uint32_t s = stripe();
  if (direction_ == TransferDirection::kUpload) {
    ForEachLayer([&](const BundlePiece& piece, uint32_t layer, LayerSum* sum,
                     std::byte* data) {
      GatherLayer(context_->host, geometry, piece.host_page, layer, s, data);
      *sum = {Crc32c({data, bytes}), true};
      // Until it has arrived, there is neither the old content nor the new.
      checksums.SetLost(piece.device_page, layer, s);
    });
    ChargeHost();
  } else {
    ForEachLayer([&](const BundlePiece& piece, uint32_t layer, LayerSum* sum,
                     std::byte* /*data*/) {
      const absl::optional<uint32_t> known =
          checksums.Get(piece.device_page, layer, s);
      *sum = {known.value_or(0), known.has_value()};
    });
  }
}

void TransferBundle::WriteLists() {
  const PoolGeometry& geometry = context_->pool->geometry();
  const auto layer_beats =
      static_cast<uint32_t>(geometry.LayerStride(stripe()) / kBeatBytes);
  std::vector<ScatterRun> runs;
  for (const BundlePiece& piece : pieces_) {
    runs.push_back({geometry.Slot(piece.device_page),
                    piece.layers.first * layer_beats,
                    piece.layers.count * layer_beats});
  }
  tag_ = context_->next_tag++;
  ScatterList::Write(runs, scatter_pool_, tag_, Lists());
  lists_sum_ = Crc32c(Lists().subspan(ScatterList::kListsOffset));
}

absl::Status TransferBundle::CheckNotLost() const {
  if (direction_ == TransferDirection::kUpload) return absl::OkStatus();
  for (const BundlePiece& piece : pieces_) {
    for (uint32_t i = 0; i < piece.layers.count; ++i) {
      if (context_->checksums->Lost(piece.device_page, piece.layers.first + i,
                                    stripe())) {
        return absl::DataLossError(absl::StrCat(
            "device page ", piece.device_page, " lost its contents"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TransferBundle::CheckLists() const {
  const uint32_t sum = Crc32c(Lists().subspan(ScatterList::kListsOffset));
  if (sum == lists_sum_) return absl::OkStatus();
  ++context_->stats->corruptions;
  return absl::DataLossError("a work list did not arrive as it was sent");
}

absl::StatusOr<TransferBundle::Stage> TransferBundle::CheckRead() {
  const uint64_t bytes = context_->pool->geometry().LayerBytes(stripe());
  std::vector<uint8_t> wrong(sums_.size());
  std::vector<uint8_t> unknown(sums_.size());
  ForEachLayer([&](const BundlePiece& /*piece*/, uint32_t /*layer*/,
                   LayerSum* sum, std::byte* data) {
    const auto i = static_cast<size_t>(sum - sums_.data());
    const uint32_t checksum = Crc32c({data, bytes});
    wrong[i] = sum->known && checksum != sum->checksum;
    unknown[i] = !sum->known;
    *sum = {sum->known ? sum->checksum : checksum, true};
  });
  ChargeHost();
  const auto bad = std::count(wrong.begin(), wrong.end(), 1);
  if (bad > 0) {
    ++context_->stats->corruptions;
    return absl::DataLossError(absl::StrCat("checksums of ", bad, " of ",
                                            sums_.size(),
                                            " layers of pages do not agree"));
  }
  if (std::count(unknown.begin(), unknown.end(), 1) > 0) {
    second_reading_ = true;
    if (ring_ != nullptr) WriteLists();  // its status words have been used
    return First();
  }
  return Stage::kDone;
}

void TransferBundle::Complete() {
  stage_ = Stage::kDone;
  const PoolGeometry& geometry = context_->pool->geometry();
  const uint32_t s = stripe();
  const bool current = generation_ == context_->tracker->generation();
  ForEachLayer([&](const BundlePiece& piece, uint32_t layer, LayerSum* sum,
                   std::byte* data) {
    if (direction_ == TransferDirection::kDownload) {
      ScatterLayer(data, context_->host, geometry, piece.host_page, layer, s);
    }
    if (current) {
      context_->checksums->Set(piece.device_page, layer, s, sum->checksum);
    }
  });
}

}  // namespace paged_kv::fpga_dma
