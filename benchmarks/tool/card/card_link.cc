// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_link.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attention/kv_pages.h"
#include "benchmarks/tool/card/card_units.h"
#include "benchmarks/tool/card/device_calls.h"
#include "benchmarks/tool/table.h"
#include "fpga_dma/checksum.h"
#include "fpga_dma/device_pool.h"
#include "fpga_dma/operation_tracker.h"
#include "fpga_dma/transfers/transfer_queue.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::DevicePool;
using fpga_dma::LayerRange;
using fpga_dma::PageTransfer;
using fpga_dma::TransferDirection;

uint32_t RoundUp(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

absl::StatusOr<std::unique_ptr<DevicePool>> MakePool(fpga_dma::Device* device,
                                                     const BlockShape& shape,
                                                     uint32_t pages,
                                                     const DecodeUnits& units) {
  fpga_dma::DevicePoolOptions options;
  options.shape = shape;
  options.num_pages = RoundUp(2 * pages, units.splits);
  options.stripes = units.stripes;
  options.splits = units.splits;
  options.banks = units.banks;
  return DevicePool::Create(device, options);
}

// Host pages of random bytes and where on the card each goes.
class ScatteredPages {
 public:
  ScatteredPages(const BlockShape& shape, uint32_t pages, uint32_t places,
                 uint64_t seed)
      : page_bytes_(PageBytes(shape).value()),
        memory_(page_bytes_ * pages / sizeof(uint64_t)),
        places_(places) {
    std::mt19937_64 random(seed);
    for (uint64_t& word : memory_) word = random();
    std::iota(places_.begin(), places_.end(), 0u);
    std::shuffle(places_.begin(), places_.end(), random);
    places_.resize(pages);
    host_.shape = shape;
    host_.num_pages = pages;
    host_.layout = OwnPageLayout(shape, memory_.data());
  }

  const attention::KvPages& host() const { return host_; }
  std::vector<PageTransfer> Transfers(TransferDirection direction,
                                      LayerRange layers) const {
    std::vector<PageTransfer> transfers;
    for (uint32_t i = 0; i < places_.size(); ++i) {
      transfers.push_back({direction, i, places_[i], layers});
    }
    return transfers;
  }
  uint32_t Checksum() const {
    return fpga_dma::Crc32c(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(memory_.data()),
                            memory_.size() * sizeof(uint64_t)));
  }
  // Of the layers alone, so that what comes back is not what was there.
  void Clear(LayerRange layers) {
    const uint64_t layer = page_bytes_ / host_.shape.layers / sizeof(uint64_t);
    for (uint32_t page = 0; page < host_.num_pages; ++page) {
      const auto first =
          memory_.begin() +
          static_cast<std::ptrdiff_t>(
              (uint64_t{page} * host_.shape.layers + layers.first) * layer);
      std::fill(first,
                first + static_cast<std::ptrdiff_t>(layer * layers.count), 0u);
    }
  }

 private:
  const uint64_t page_bytes_;
  std::vector<uint64_t> memory_;
  std::vector<uint32_t> places_;  // [pages]
  attention::KvPages host_;
};

// Up, and down again.
absl::Status MovePages(fpga_dma::Device* device, const CardCalibration& costs,
                       const CardCase& card_case, uint32_t pages,
                       const DecodeUnits& units, bool whole, CardLink* link) {
  BlockShape shape = card_case.shape;
  // Of single layers the others only take memory.
  if (!whole) shape.layers = std::min(shape.layers, 2u);
  const LayerRange layers =
      whole ? LayerRange{0, shape.layers} : LayerRange{shape.layers - 1, 1};
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<DevicePool> pool,
                            MakePool(device, shape, pages, units));
  ScatteredPages scattered(shape, pages, pool->num_pages(), card_case.seed);
  const uint32_t checksum = scattered.Checksum();
  fpga_dma::OperationTracker tracker(device, fpga_dma::OperationLimits{});
  PAGED_KV_ASSIGN_OR_RETURN(
      const std::unique_ptr<fpga_dma::TransferQueue> queue,
      fpga_dma::TransferQueue::Create(&tracker, pool.get(), scattered.host(),
                                      {}));
  const double bytes = static_cast<double>(PageBytes(shape).value()) /
                       shape.layers * layers.count * pages;
  for (const bool upload : {true, false}) {
    if (!upload) scattered.Clear(layers);
    const fpga_dma::TransferQueueStats before = queue->Stats();
    const absl::Time begin = device->Now();
    PAGED_KV_ASSIGN_OR_RETURN(
        const fpga_dma::TransferListId id,
        queue->Submit(scattered.Transfers(upload ? TransferDirection::kUpload
                                                 : TransferDirection::kDownload,
                                          layers),
                      fpga_dma::TransferPriority::kDecode));
    PAGED_KV_RETURN_IF_ERROR(queue->Wait(id, absl::InfiniteFuture()));
    PAGED_KV_RETURN_IF_ERROR(queue->TakeResult()->status);
    const absl::Duration time = device->Now() - begin;
    const fpga_dma::TransferQueueStats after = queue->Stats();
    LinkMove move;
    move.stripes = units.stripes;
    move.splits = units.splits;
    move.layers = layers.count;
    move.whole = whole;
    move.upload = upload;
    const AffineCost& cost = upload ? costs.upload : costs.download;
    move.share = bytes / cost.bytes_per_second / absl::ToDoubleSeconds(time);
    move.descriptors = after.descriptors_up + after.descriptors_down -
                       before.descriptors_up - before.descriptors_down;
    link->moves.push_back(move);
  }
  if (scattered.Checksum() != checksum) {
    return absl::DataLossError(
        absl::StrCat(pages, " pages came back from the card as others"));
  }
  return absl::OkStatus();
}

// What packing is for: a descriptor per K and V of a head, each waited for.
absl::StatusOr<double> SliceShare(fpga_dma::Device* device,
                                  const CardCalibration& costs,
                                  const CardCase& card_case, uint32_t pages,
                                  const DecodeUnits& units) {
  BlockShape shape = card_case.shape;
  shape.layers = 1;
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<DevicePool> pool,
                            MakePool(device, shape, pages, units));
  const fpga_dma::PoolGeometry& geometry = pool->geometry();
  std::vector<uint32_t> places(pool->num_pages());
  std::iota(places.begin(), places.end(), 0u);
  std::mt19937_64 random(card_case.seed);
  std::shuffle(places.begin(), places.end(), random);
  uint64_t bytes = 0;
  const absl::Time begin = device->Now();
  for (uint32_t i = 0; i < pages; ++i) {
    for (uint32_t stripe = 0; stripe < geometry.stripes(); ++stripe) {
      fpga_dma::SlabRange range = pool->Range(places[i], stripe, {0, 1});
      range.bytes = geometry.HeadBytes();
      for (uint32_t head = 0; head < geometry.Heads(stripe); ++head) {
        PAGED_KV_ASSIGN_OR_RETURN(const fpga_dma::OpId op,
                                  device->StartUpload(range, 0));
        PAGED_KV_RETURN_IF_ERROR(AwaitOperation(*device, op).status());
        range.offset += range.bytes;
        bytes += range.bytes;
      }
    }
  }
  return static_cast<double>(bytes) / costs.upload.bytes_per_second /
         absl::ToDoubleSeconds(device->Now() - begin);
}

}  // namespace

double CardLink::WorstShare(bool whole) const {
  double worst = 0;
  for (const LinkMove& move : moves) {
    if (move.whole != whole) continue;
    if (worst == 0 || move.share < worst) worst = move.share;
  }
  return worst;
}

absl::StatusOr<CardLink> MeasureCardLink(fpga_dma::Device* device,
                                         const CardCalibration& costs,
                                         const CardCase& card_case,
                                         uint32_t pages, Progress& progress) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const DecodeUnits striped,
      FindDecodeUnits(device->info(), card_case.shape.kv_heads));
  std::vector<DecodeUnits> layouts(1, striped);
  layouts[0].stripes = 1;
  layouts[0].splits = static_cast<uint32_t>(striped.banks.size());
  if (striped.stripes > 1) layouts.push_back(striped);
  CardLink link;
  link.pages = pages;
  progress.Start("scattered pages, lists");
  for (const DecodeUnits& units : layouts) {
    for (const bool whole : {true, false}) {
      progress.Update(link.moves.size(), 4 * layouts.size());
      PAGED_KV_RETURN_IF_ERROR(
          MovePages(device, costs, card_case, pages, units, whole, &link));
    }
  }
  PAGED_KV_ASSIGN_OR_RETURN(
      link.slice_share, SliceShare(device, costs, card_case, pages, striped));
  progress.Clear();
  return link;
}

std::string CardLinkText(const CardLink& link) {
  std::string text = absl::StrFormat(
      "link      %s pages scattered over a pool of twice as "
      "many\n\n",
      Grouped(link.pages));
  Table table({"stripes", "splits", "of each page", "direction", "descriptors",
               "share of the link"});
  for (const LinkMove& move : link.moves) {
    table.Add({absl::StrCat(move.stripes), absl::StrCat(move.splits),
               move.whole ? absl::StrCat("all ", move.layers, " layers")
                          : "one layer",
               move.upload ? "up" : "down", Grouped(move.descriptors),
               absl::StrFormat("%.3f", move.share)});
  }
  absl::StrAppend(&text, table.Text(),
                  absl::StrFormat("\nslice by slice, without packing: %.3f\n",
                                  link.slice_share));
  return text;
}

nlohmann::ordered_json CardLinkJson(const CardLink& link) {
  nlohmann::ordered_json json = {
      {"pages", link.pages},
      {"link_share_whole_pages", link.WorstShare(true)},
      {"link_share_single_layers", link.WorstShare(false)},
      {"link_share_slice_by_slice", link.slice_share}};
  for (const LinkMove& move : link.moves) {
    json["moves"].push_back({{"stripes", move.stripes},
                             {"splits", move.splits},
                             {"layers", move.layers},
                             {"whole", move.whole},
                             {"direction", move.upload ? "up" : "down"},
                             {"descriptors", move.descriptors},
                             {"link_share", move.share}});
  }
  return json;
}

}  // namespace paged_kv::tool
