// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Set-up and page tables of CardDecode; card_decode_run.cc has what happens per
// layer.

#include "fpga_dma/decode/card_decode.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/transfers/page_copy.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {
namespace {

uint64_t WholeBeats(uint64_t bytes) {
  return (bytes + kBeatBytes - 1) / kBeatBytes * kBeatBytes;
}

absl::Status CheckKernelTakes(const BlockShape& shape,
                              const CardDecodeOptions& options) {
  constexpr uint32_t kHeadDims[] = {8, 16, 32, 64, 128};
  const bool dim = std::find(std::begin(kHeadDims), std::end(kHeadDims),
                             shape.head_dim) != std::end(kHeadDims);
  if (shape.dtype != DType::kBF16 || !dim ||
      shape.VHeadDim() != shape.head_dim ||
      shape.block_tokens % kTileSlots != 0 ||
      shape.block_tokens > kMaxKernelBlockTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat(kDecodeKernel,
                     " takes bf16, head_dim 8, 16, 32, 64 or 128 and blocks "
                     "of whole tiles; not ",
                     DTypeName(shape.dtype), ", ", shape.head_dim, " and ",
                     shape.VHeadDim(), ", ", shape.block_tokens, " tokens"));
  }
  const uint32_t group = options.query_heads / shape.kv_heads;
  if (group == 0 || group > kMaxGroupHeads ||
      options.query_heads % shape.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.query_heads, " query heads over ", shape.kv_heads,
        " KV heads; must be 1 to ", kMaxGroupHeads, " times as many"));
  }
  if (!std::isfinite(options.scale) || options.max_attempts == 0 ||
      !std::isfinite(options.host_bytes_per_second) ||
      options.host_bytes_per_second < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("scale ", options.scale, ", ", options.max_attempts,
                     " attempts, host rate ", options.host_bytes_per_second));
  }
  return absl::OkStatus();
}

PageStreamOptions StreamOptions(const CardDecodeOptions& options) {
  PageStreamOptions stream;
  stream.max_attempts = options.max_attempts;
  stream.host_bytes_per_second = options.host_bytes_per_second;
  return stream;
}

}  // namespace

CardDecode::CardDecode(OperationTracker* tracker, const DevicePool* pool,
                       const attention::KvPages& host,
                       const CardDecodeOptions& options)
    : tracker_(tracker),
      pool_(pool),
      host_(host),
      options_(options),
      stream_(tracker, pool, host, StreamOptions(options)) {}

absl::StatusOr<std::unique_ptr<CardDecode>> CardDecode::Create(
    OperationTracker* tracker, const DevicePool* pool,
    const attention::KvPages& host, const CardDecodeOptions& options) {
  PAGED_KV_RETURN_IF_ERROR(CheckHostPages(host, pool->geometry()));
  PAGED_KV_RETURN_IF_ERROR(CheckKernelTakes(pool->geometry().shape(), options));
  // Not make_unique: the constructor is private.
  std::unique_ptr<CardDecode> decode(
      new CardDecode(tracker, pool, host, options));
  PAGED_KV_RETURN_IF_ERROR(decode->Setup());
  return decode;
}

absl::Status CardDecode::Setup() {
  const DeviceInfo& info = tracker_->device()->info();
  units_.resize(pool_->num_slabs());
  for (uint32_t slab = 0; slab < pool_->num_slabs(); ++slab) {
    bool found = false;
    for (size_t i = 0; i < info.compute_units.size() && !found; ++i) {
      const ComputeUnitInfo& unit = info.compute_units[i];
      const std::vector<BankId>& banks = unit.argument_banks;
      if (unit.kernel != kDecodeKernel ||
          banks.size() != static_cast<size_t>(PagedDecodeArgument::kCount) ||
          banks[static_cast<size_t>(PagedDecodeArgument::kKv)] !=
              pool_->bank(slab)) {
        continue;
      }
      const BankId bank =
          banks[static_cast<size_t>(PagedDecodeArgument::kWork)];
      if (bank_ == kNoBank) bank_ = bank;
      found = bank == bank_;
      for (PagedDecodeArgument other :
           {PagedDecodeArgument::kTable, PagedDecodeArgument::kQueries,
            PagedDecodeArgument::kOut, PagedDecodeArgument::kStatus}) {
        found = found && banks[static_cast<size_t>(other)] == bank_;
      }
      units_[slab] = static_cast<uint32_t>(i);
    }
    if (!found) {
      return absl::FailedPreconditionError(
          absl::StrCat("no unit of ", kDecodeKernel, " reads bank ",
                       pool_->bank(slab).value(),
                       " and has its other ports in one bank with all others"));
    }
  }
  return absl::OkStatus();
}

uint32_t CardDecode::group() const {
  return options_.query_heads / host_.shape.kv_heads;
}

uint64_t CardDecode::OutBeatsOfItem() const {
  return uint64_t{group()} * OutRowBeats(host_.shape.head_dim) + 1;
}

absl::Status CardDecode::CheckBlocks(const DecodeBlocks& blocks) const {
  const size_t n = blocks.num_sequences();
  bool fits = blocks.indptr.size() == n + 1 && blocks.indptr[0] == 0 &&
              blocks.device_pages.size() == blocks.host_pages.size();
  for (size_t i = 0; fits && i < n; ++i) {
    const bool empty = blocks.indptr[i + 1] == blocks.indptr[i];
    const int32_t last = blocks.last_page_tokens[i];
    fits = blocks.indptr[i + 1] >= blocks.indptr[i] &&
           last >= (empty ? 0 : 1) &&
           last <= (empty ? 0 : static_cast<int32_t>(host_.shape.block_tokens));
  }
  if (!fits ||
      static_cast<size_t>(blocks.indptr[n]) != blocks.device_pages.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "blocks of a step: ", n, " sequences, indptr of ", blocks.indptr.size(),
        ", ", blocks.device_pages.size(), " device and ",
        blocks.host_pages.size(), " host pages do not fit each other"));
  }
  for (size_t i = 0; i < blocks.device_pages.size(); ++i) {
    const uint32_t device = blocks.device_pages[i];
    const uint32_t host = blocks.host_pages[i];
    const bool on_host = device == kNoDevicePage || device == kStreamedPage;
    if (on_host ? host >= host_.num_pages : device >= pool_->num_pages()) {
      return absl::OutOfRangeError(absl::StrCat(
          "block ", i, " of a step: device page ", device, " of ",
          pool_->num_pages(), ", host page ", host, " of ", host_.num_pages));
    }
  }
  return absl::OkStatus();
}

absl::Status CardDecode::BeginStep(const DecodeBlocks& blocks) {
  PAGED_KV_RETURN_IF_ERROR(CheckBlocks(blocks));
  generation_ = tracker_->generation();
  const uint32_t block_tokens = host_.shape.block_tokens;
  sequences_ = blocks.num_sequences();
  runs_.clear();
  table_.clear();
  host_indptr_.assign(1, 0);
  host_indices_.clear();
  host_last_.clear();
  host_first_.assign(sequences_, 0);
  host_tokens_ = 0;
  StreamedPages streamed;
  streamed.all = static_cast<uint32_t>(std::count(
      blocks.device_pages.begin(), blocks.device_pages.end(), kStreamedPage));
  streamed.of_split.resize(pool_->geometry().splits());
  for (uint32_t s = 0; s < sequences_; ++s) {
    MakeRuns(blocks, s, &streamed);
    const auto end = static_cast<size_t>(blocks.indptr[s + 1]);
    uint32_t last = 0;
    for (auto block = static_cast<size_t>(blocks.indptr[s]); block < end;
         ++block) {
      if (blocks.device_pages[block] != kNoDevicePage) continue;
      host_indices_.push_back(static_cast<int32_t>(blocks.host_pages[block]));
      last = block + 1 == end
                 ? static_cast<uint32_t>(blocks.last_page_tokens[s])
                 : block_tokens;
      host_tokens_ += last;
    }
    host_indptr_.push_back(static_cast<int32_t>(host_indices_.size()));
    host_last_.push_back(static_cast<int32_t>(last));
  }
  PAGED_KV_RETURN_IF_ERROR(stream_.BeginStep(std::move(streamed.of_split)));
  next_layer_ = 0;
  stream_.Send(0);
  stream_.Advance();
  LayOut();
  return MakeRoom();
}

// A run costs outputs, which are read back twice over the link that also reads
// streamed pages back. So these are dealt out in as few runs as can be, the
// first share of all of a step's to the first split and so on; those of the
// pool are where they are.
void CardDecode::MakeRuns(const DecodeBlocks& blocks, uint32_t sequence,
                          StreamedPages* streamed) {
  const PoolGeometry& geometry = pool_->geometry();
  const auto begin = static_cast<size_t>(blocks.indptr[sequence]);
  const auto end = static_cast<size_t>(blocks.indptr[sequence + 1]);
  for (const bool from_host : {false, true}) {
    const uint32_t dealt = streamed->dealt;
    for (uint32_t split = 0; split < geometry.splits(); ++split) {
      Run run;
      run.sequence = sequence;
      run.split = split;
      run.streamed = from_host;
      run.table_begin = static_cast<uint32_t>(table_.size());
      std::vector<uint32_t>& pages = streamed->of_split[split];
      uint32_t nth = dealt;
      for (size_t block = begin; block < end; ++block) {
        const uint32_t page = blocks.device_pages[block];
        if (page == kNoDevicePage || (page == kStreamedPage) != from_host) {
          continue;
        }
        const uint64_t of =
            from_host ? uint64_t{nth++} * geometry.splits() / streamed->all
                      : geometry.Split(page);
        if (of != split) continue;
        table_.push_back(from_host ? static_cast<uint32_t>(pages.size())
                                   : geometry.Slot(page));
        if (from_host) {
          pages.push_back(blocks.host_pages[block]);
          ++streamed->dealt;
        }
        run.tokens +=
            block + 1 == end
                ? static_cast<uint32_t>(blocks.last_page_tokens[sequence])
                : host_.shape.block_tokens;
      }
      if (run.tokens > 0) runs_.push_back(run);
    }
  }
}

bool CardDecode::Serves(const Launch& launch, const Run& run) const {
  return run.streamed == launch.streamed &&
         run.split == launch.slab % pool_->geometry().splits();
}

uint32_t CardDecode::num_parts() const {
  return pool_->geometry().splits() * (stream_.empty() ? 1 : 2);
}

void CardDecode::LayOut() {
  const PoolGeometry& geometry = pool_->geometry();
  uint64_t at = 0;
  uint64_t items = 0;
  uint64_t streamed_items = 0;
  launches_.clear();
  for (const bool streamed : {true, false}) {
    for (uint32_t slab = 0; slab < units_.size(); ++slab) {
      Launch launch;
      launch.slab = slab;
      launch.streamed = streamed;
      const auto runs =
          std::count_if(runs_.begin(), runs_.end(),
                        [&](const Run& run) { return Serves(launch, run); });
      if (runs == 0) continue;
      launch.items =
          static_cast<uint32_t>(runs) * geometry.Heads(pool_->SlabStripe(slab));
      launch.work_offset = at;
      at += kBeatBytes * (1 + uint64_t{launch.items});
      items += launch.items;
      launches_.push_back(launch);
    }
    if (streamed) streamed_items = items;
  }
  at_.table = at;
  at_.queries = at + WholeBeats(table_.size() * sizeof(uint32_t));
  at_.status = at_.queries + sequences_ * options_.query_heads *
                                 RowBeats(host_.shape.head_dim) * kBeatBytes;
  at_.out = at_.status + launches_.size() * kBeatBytes;
  at_.end = at_.out + items * OutBeatsOfItem() * kBeatBytes;
  at_.early = streamed_items == 0
                  ? at_.end
                  : at_.out + streamed_items * OutBeatsOfItem() * kBeatBytes;
  for (size_t i = 0; i < launches_.size(); ++i) {
    launches_[i].status_offset = at_.status + i * kBeatBytes;
  }
}

DecodeTraffic CardDecode::traffic() const {
  const PoolGeometry& geometry = pool_->geometry();
  const uint64_t token_bytes =
      BytesPerToken(host_.shape).value() / host_.shape.layers;
  DecodeTraffic traffic;
  traffic.kv_read.assign(units_.size(), 0);
  for (const Launch& launch : launches_) {
    for (const Run& run : runs_) {
      if (!Serves(launch, run)) continue;
      traffic.kv_read[launch.slab] +=
          run.tokens * token_bytes / host_.shape.kv_heads *
          geometry.Heads(pool_->SlabStripe(launch.slab));
    }
  }
  traffic.kv_on_host = host_tokens_ * token_bytes;
  traffic.streamed = stream_.layer_bytes();
  traffic.launches = static_cast<uint32_t>(launches_.size());
  if (traffic.launches > 0) {
    traffic.inputs = at_.status;
    traffic.outputs = at_.end - at_.status;
  }
  return traffic;
}

absl::Status CardDecode::MakeRoom() {
  if (at_.end <= slab_bytes_) return absl::OkStatus();
  Device* device = tracker_->device();
  // Half as much again, so that a growing batch does not ask every step.
  const uint64_t bytes = (at_.end + at_.end / 2 + 4095) / 4096 * 4096;
  PAGED_KV_ASSIGN_OR_RETURN(
      OwnedSlab slab,
      OwnedSlab::Create(device, bank_, bytes, SlabKind::kHostVisible));
  PAGED_KV_ASSIGN_OR_RETURN(image_, device->HostImage(slab.id()));
  slab_ = std::move(slab);
  slab_bytes_ = bytes;
  return absl::OkStatus();
}

std::vector<DecodeEvent> CardDecode::TakeEvents() {
  for (const PageStream::Event& event : stream_.TakeEvents()) {
    events_.push_back({"stream", event.layer, event.start, event.finish});
  }
  return std::exchange(events_, {});
}

}  // namespace paged_kv::fpga_dma
