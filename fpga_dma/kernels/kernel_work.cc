// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/kernel_work.h"

#include <algorithm>

#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_checks.h"

namespace paged_kv::fpga_dma {
namespace {

// Fills a KernelWork argument by argument.
class WorkMeter {
 public:
  explicit WorkMeter(size_t arguments) { work_.arguments.resize(arguments); }

  template <typename Index>
  void Read(Index argument, uint64_t beats, uint64_t run_beats) {
    ArgumentTraffic& traffic = At(argument);
    traffic.bytes_read += beats * kBeatBytes;
    NoteBurst(&traffic, run_beats);
  }
  template <typename Index>
  void Write(Index argument, uint64_t beats, uint64_t run_beats) {
    ArgumentTraffic& traffic = At(argument);
    traffic.bytes_written += beats * kBeatBytes;
    NoteBurst(&traffic, run_beats);
  }
  // Words of 4 bytes that lie apart or together.
  template <typename Index>
  void ReadWords(Index argument, uint64_t words, uint64_t run_words) {
    ArgumentTraffic& traffic = At(argument);
    traffic.bytes_read += words * 4;
    traffic.burst_bytes =
        std::max(traffic.burst_bytes,
                 static_cast<uint32_t>(std::min<uint64_t>(run_words, 16) * 4));
  }
  // Header, items, and the status word read and written.
  template <typename Index>
  void Launch(Index work, Index status, uint64_t items) {
    Read(work, 1 + items, 1 + items);
    Read(status, 2, 1);
    Write(status, 1, 1);
    work_.num_items = items;
  }
  void Flops(uint64_t flops) { work_.flops += flops; }
  const KernelWork& work() const { return work_; }

 private:
  template <typename Index>
  ArgumentTraffic& At(Index argument) {
    return work_.arguments[static_cast<size_t>(argument)];
  }
  static void NoteBurst(ArgumentTraffic* traffic, uint64_t run_beats) {
    const uint64_t beats = std::min<uint64_t>(run_beats, kBurstBeats);
    traffic->burst_bytes = std::max(traffic->burst_bytes,
                                    static_cast<uint32_t>(beats * kBeatBytes));
  }

  KernelWork work_;
};

uint64_t DivideUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

template <typename Index>
KvElement Element(absl::Span<const BoundArgument> arguments, Index element) {
  return static_cast<KvElement>(Scalar(arguments, element));
}

// The items that a launch works through; 0 for one that the kernel refuses.
template <typename Index>
uint32_t NumItems(absl::Span<const BoundArgument> arguments, Index work,
                  Index max_items, Index status, KernelId kernel) {
  KernelStatus before;
  std::memcpy(&before, Address<std::byte>(arguments, status), sizeof(before));
  WorkListHeader header;
  std::memcpy(&header, Address<std::byte>(arguments, work), sizeof(header));
  if (before.code != KernelError::kOk || header.magic != kWorkListMagic ||
      header.kernel != kernel ||
      header.num_items > Scalar(arguments, max_items)) {
    return 0;
  }
  return std::min(header.num_items, kMaxWorkItems);
}

}  // namespace

absl::StatusOr<KernelWork> PagedDecodeWork(
    absl::Span<const BoundArgument> arguments) {
  using A = PagedDecodeArgument;
  const absl::Status status =
      CheckArguments(*FindKernel("paged_decode"), arguments);
  if (!status.ok()) return status;
  const uint32_t items = NumItems(arguments, A::kWork, A::kMaxItems, A::kStatus,
                                  KernelId::kPagedDecode);
  const uint64_t head_dim = Scalar(arguments, A::kHeadDim);
  const uint64_t group = Scalar(arguments, A::kGroupHeads);
  const uint64_t block = std::max(1u, Scalar(arguments, A::kBlockTokens));
  const KvElement element = Element(arguments, A::kElement);
  const uint64_t tile_beats =
      TileBeats(Scalar(arguments, A::kHeadDim), element);
  const uint64_t scale_beats = TileScaleBeats(element);
  WorkMeter meter(arguments.size());
  meter.Launch(A::kWork, A::kStatus, items);
  for (uint32_t i = 0; i < items; ++i) {
    const DecodeItem item = WorkItem<DecodeItem>(arguments, A::kWork, i);
    const uint64_t end_slot = uint64_t{item.first_slot} + item.num_tokens;
    const uint64_t tiles =
        DivideUp(end_slot, kTileSlots) - item.first_slot / kTileSlots;
    const uint64_t pages = DivideUp(end_slot, block);
    const uint64_t query_beats =
        group * RowBeats(static_cast<uint32_t>(head_dim));
    const uint64_t out_beats =
        group * OutRowBeats(static_cast<uint32_t>(head_dim));
    // Scales are bursts of their own, so the average burst is half as long.
    meter.Read(A::kKv, 2 * tiles * (tile_beats + scale_beats),
               (tile_beats + scale_beats) / (1 + scale_beats));
    meter.ReadWords(A::kTable, pages, item.table_step == 1 ? pages : 1);
    meter.Read(A::kQueries, query_beats, query_beats);
    meter.Write(A::kOut, out_beats + 1, out_beats);
    // Whole tiles go through the adders, q * k and p * v.
    meter.Flops(tiles * kTileSlots * head_dim * group * 4);
  }
  return meter.work();
}

absl::StatusOr<KernelWork> KvAppendWork(
    absl::Span<const BoundArgument> arguments) {
  using A = KvAppendArgument;
  const absl::Status status =
      CheckArguments(*FindKernel("kv_append"), arguments);
  if (!status.ok()) return status;
  const uint32_t items = NumItems(arguments, A::kWork, A::kMaxItems, A::kStatus,
                                  KernelId::kKvAppend);
  const uint32_t head_dim = Scalar(arguments, A::kHeadDim);
  const KvElement element = Element(arguments, A::kElement);
  const uint64_t tile_beats = TileBeats(head_dim, element);
  const uint64_t scale_beats = 2 * TileScaleBeats(element);
  WorkMeter meter(arguments.size());
  meter.Launch(A::kWork, A::kStatus, items);
  for (uint32_t i = 0; i < items; ++i) {
    const AppendItem item = WorkItem<AppendItem>(arguments, A::kWork, i);
    const uint64_t end_slot = uint64_t{item.first_slot} + item.num_tokens;
    const uint64_t slices = item.num_slices;
    const uint64_t tiles =
        DivideUp(end_slot, kTileSlots) - item.first_slot / kTileSlots;
    const uint64_t row_bytes = uint64_t{head_dim} * KvElementBytes(element);
    const uint64_t first_byte = item.first_slot * row_bytes;
    const uint64_t v_beats =
        DivideUp(end_slot * row_bytes, kBeatBytes) - first_byte / kBeatBytes;
    const uint64_t rows =
        uint64_t{item.num_tokens} * AppendTokenBeats(head_dim, element);
    meter.Read(A::kRows, slices * rows, rows);
    // Only the first tile can hold slots that stay, and so its beats of V.
    const uint64_t kept =
        item.first_slot % kTileSlots != 0 ? tile_beats + scale_beats : 0;
    const uint64_t kept_v = first_byte % kBeatBytes != 0 ? 1 : 0;
    if (kept + kept_v > 0) {
      meter.Read(A::kKvIn, slices * (kept + kept_v), tile_beats);
    }
    meter.Write(A::kKvOut,
                slices * (tiles * (tile_beats + scale_beats) + v_beats),
                tile_beats);
  }
  return meter.work();
}

absl::StatusOr<KernelWork> KvCopyWork(
    absl::Span<const BoundArgument> arguments) {
  using A = KvCopyArgument;
  const absl::Status status = CheckArguments(*FindKernel("kv_copy"), arguments);
  if (!status.ok()) return status;
  const uint32_t items = NumItems(arguments, A::kWork, A::kMaxItems, A::kStatus,
                                  KernelId::kKvCopy);
  const uint32_t head_dim = Scalar(arguments, A::kHeadDim);
  const KvElement element = Element(arguments, A::kElement);
  WorkMeter meter(arguments.size());
  meter.Launch(A::kWork, A::kStatus, items);
  for (uint32_t i = 0; i < items; ++i) {
    const CopyItem item = WorkItem<CopyItem>(arguments, A::kWork, i);
    const uint64_t filled = item.filled_tokens;
    const uint64_t tiles = DivideUp(filled, kTileSlots);
    const uint64_t k_beats = tiles * TileBeats(head_dim, element);
    const uint64_t v_beats =
        DivideUp(filled * head_dim * KvElementBytes(element), kBeatBytes);
    const uint64_t scale_beats = 2 * tiles * TileScaleBeats(element);
    const uint64_t beats = item.num_slices * (k_beats + v_beats + scale_beats);
    meter.Read(A::kSource, beats, k_beats);
    meter.Write(A::kTarget, beats, k_beats);
  }
  return meter.work();
}

absl::StatusOr<KernelWork> KvScatterWork(
    absl::Span<const BoundArgument> arguments) {
  using A = KvScatterArgument;
  const absl::Status status =
      CheckArguments(*FindKernel("kv_scatter"), arguments);
  if (!status.ok()) return status;
  const uint32_t items = NumItems(arguments, A::kWork, A::kMaxItems, A::kStatus,
                                  KernelId::kKvScatter);
  WorkMeter meter(arguments.size());
  meter.Launch(A::kWork, A::kStatus, items);
  for (uint32_t i = 0; i < items; ++i) {
    const ScatterItem item = WorkItem<ScatterItem>(arguments, A::kWork, i);
    meter.Read(A::kSlab, item.num_beats, item.num_beats);
    meter.Write(A::kKv, item.num_beats, item.num_beats);
  }
  return meter.work();
}

}  // namespace paged_kv::fpga_dma
