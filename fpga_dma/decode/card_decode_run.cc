// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer of CardDecode.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "attention/float_formats.h"
#include "attention/merge_partials.h"
#include "attention/paged_decode.h"
#include "fpga_dma/checksum.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "paged_kv/check.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::fpga_dma {

using attention::AttentionOutputs;

absl::Status CardDecode::Attend(uint32_t layer, absl::Span<const float> q,
                                const AttentionOutputs& outputs,
                                attention::ParallelFor& parallel) {
  const BlockShape& shape = host_.shape;
  const size_t rows = sequences_ * options_.query_heads;
  if (layer >= shape.layers || q.size() != rows * shape.head_dim ||
      outputs.out.size() != rows * shape.head_dim ||
      (!outputs.lse.empty() && outputs.lse.size() != rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer ", layer, " of ", shape.layers, ", ", q.size(), " queries, ",
        outputs.out.size(), " outputs, ", outputs.lse.size(), " lse; the step ",
        "has ", rows, " rows of ", shape.head_dim));
  }
  // The host's part comes last: a merge does not depend on where in its
  // sequence a part lies.
  const uint32_t host_index = num_parts();
  std::vector<float> out((host_index + 1) * rows * shape.head_dim);
  std::vector<float> lse((host_index + 1) * rows,
                         -std::numeric_limits<float>::infinity());
  const AttentionOutputs host_part = {
      absl::MakeSpan(out).subspan(host_index * rows * shape.head_dim),
      absl::MakeSpan(lse).subspan(host_index * rows)};
  bool host_done = host_tokens_ == 0;
  if (!stream_.empty()) {
    if (layer != next_layer_ && layer + 1 != next_layer_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "layer ", layer,
          " of a step with streamed blocks, which is at layer ", next_layer_));
    }
    next_layer_ = layer + 1;
    // What read the half of layer - 1 has ended; some of it may be on its way
    // still if that layer failed.
    if (layer > 0) {
      PAGED_KV_RETURN_IF_ERROR(AwaitStream(layer - 1, /*verified=*/true));
    }
    if (next_layer_ < shape.layers) stream_.Send(next_layer_);
  }
  if (!runs_.empty()) {
    PAGED_KV_RETURN_IF_ERROR(CheckGeneration());
    absl::Status status;
    for (uint32_t attempt = 0; attempt < options_.max_attempts; ++attempt) {
      status = AttendOnCard(layer, q, host_part, parallel, &host_done);
      PAGED_KV_RETURN_IF_ERROR(CheckGeneration());
      if (status.ok() || absl::IsInvalidArgument(status)) break;
    }
    PAGED_KV_RETURN_IF_ERROR(status);
    TakeOutputs(&out, &lse);
  }
  if (!host_done) {
    PAGED_KV_RETURN_IF_ERROR(AttendOnHost(layer, q, host_part, parallel));
  }
  std::vector<attention::PartialAttention> parts;
  for (uint32_t i = 0; i <= host_index; ++i) {
    parts.push_back({absl::MakeSpan(out).subspan(i * rows * shape.head_dim,
                                                 rows * shape.head_dim),
                     absl::MakeSpan(lse).subspan(i * rows, rows)});
  }
  return attention::MergePartials(parts, rows, shape.head_dim, outputs);
}

absl::Status CardDecode::CheckGeneration() const {
  if (tracker_->generation() == generation_) return absl::OkStatus();
  return absl::DataLossError("the card lost its pages in a reset");
}

absl::Status CardDecode::AttendOnHost(uint32_t layer, absl::Span<const float> q,
                                      const AttentionOutputs& part,
                                      attention::ParallelFor& parallel) {
  PageTable table;
  table.indptr = host_indptr_;
  table.page_indices = host_indices_;
  table.last_page_tokens = host_last_;
  table.first_token = host_first_;
  table.block_tokens = static_cast<int32_t>(host_.shape.block_tokens);
  attention::AttentionOptions options;
  options.scale = options_.scale;
  const absl::Time start = tracker_->device()->Now();
  PAGED_KV_RETURN_IF_ERROR(attention::PagedDecode(
      {host_, layer, table, options_.query_heads, q}, options, part, parallel));
  if (options_.host_bytes_per_second > 0) {
    const double bytes =
        static_cast<double>(host_tokens_) *
        static_cast<double>(BytesPerToken(host_.shape).value()) /
        host_.shape.layers;
    tracker_->device()->HostWorks(
        absl::Seconds(bytes / options_.host_bytes_per_second));
  }
  events_.push_back({"host", layer, start, tracker_->device()->Now()});
  return absl::OkStatus();
}

void CardDecode::WriteInputs(uint32_t layer, absl::Span<const float> q) {
  const PoolGeometry& geometry = pool_->geometry();
  const uint32_t dim = host_.shape.head_dim;
  const uint32_t row_beats = RowBeats(dim);
  std::memset(image_.data(), 0, at_.out);
  ++tag_;
  uint64_t out_beat = 0;
  for (const Launch& launch : launches_) {
    const uint32_t stripe = pool_->SlabStripe(launch.slab);
    std::byte* to = image_.data() + launch.work_offset;
    WorkListHeader header{};
    header.magic = kWorkListMagic;
    header.kernel = KernelId::kPagedDecode;
    header.num_items = launch.items;
    header.tag = tag_;
    std::memcpy(to, &header, sizeof(header));
    for (const Run& run : runs_) {
      if (!Serves(launch, run)) continue;
      for (uint32_t h = 0; h < geometry.Heads(stripe); ++h) {
        const uint64_t slice =
            (launch.streamed ? 0 : layer * geometry.LayerStride(stripe)) +
            h * geometry.HeadBytes();
        const uint32_t row = run.sequence * options_.query_heads +
                             (geometry.FirstHead(stripe) + h) * group();
        DecodeItem item{};
        item.table_begin = run.table_begin;
        item.table_step = 1;
        item.num_tokens = run.tokens;
        item.slice_beat = static_cast<uint32_t>(slice / kBeatBytes);
        item.query_beat = row * row_beats;
        item.out_beat = static_cast<uint32_t>(out_beat);
        item.lse_beat =
            static_cast<uint32_t>(out_beat + group() * OutRowBeats(dim));
        item.scale = options_.scale != 0
                         ? options_.scale
                         : 1.0f / std::sqrt(static_cast<float>(dim));
        to += kBeatBytes;
        std::memcpy(to, &item, sizeof(item));
        out_beat += OutBeatsOfItem();
      }
    }
  }
  std::memcpy(image_.data() + at_.table, table_.data(),
              table_.size() * sizeof(uint32_t));
  for (size_t row = 0; row < q.size() / dim; ++row) {
    std::byte* to = image_.data() + at_.queries + row * row_beats * kBeatBytes;
    for (uint32_t d = 0; d < dim; ++d) {
      const uint16_t bits = attention::F32ToBf16(q[row * dim + d]);
      std::memcpy(to + d * sizeof(bits), &bits, sizeof(bits));
    }
  }
}

std::vector<KernelArgument> CardDecode::Arguments(const Launch& launch,
                                                  uint32_t layer) const {
  const PoolGeometry& geometry = pool_->geometry();
  const uint32_t stripe = pool_->SlabStripe(launch.slab);
  std::vector<KernelArgument> arguments(
      static_cast<size_t>(PagedDecodeArgument::kCount));
  const auto set = [&](PagedDecodeArgument which, KernelArgument argument) {
    arguments[static_cast<size_t>(which)] = argument;
  };
  using Argument = PagedDecodeArgument;
  set(Argument::kKv, launch.streamed
                         ? stream_.Address(launch.slab, layer)
                         : AddressArgument(pool_->slab(launch.slab)));
  set(Argument::kWork, AddressArgument(slab_.id(), launch.work_offset));
  set(Argument::kTable, AddressArgument(slab_.id(), at_.table));
  set(Argument::kQueries, AddressArgument(slab_.id(), at_.queries));
  set(Argument::kOut, AddressArgument(slab_.id(), at_.out));
  set(Argument::kStatus, AddressArgument(slab_.id(), launch.status_offset));
  set(Argument::kMaxItems, ScalarArgument(launch.items));
  set(Argument::kTableEntries, ScalarArgument(table_.size()));
  set(Argument::kQueryBeats,
      ScalarArgument((at_.status - at_.queries) / kBeatBytes));
  set(Argument::kOutBeats, ScalarArgument((at_.end - at_.out) / kBeatBytes));
  set(Argument::kNumPages,
      ScalarArgument(launch.streamed
                         ? stream_.Pages(launch.slab % geometry.splits())
                         : geometry.SplitPages()));
  set(Argument::kPageStrideBeats,
      ScalarArgument((launch.streamed ? geometry.LayerStride(stripe)
                                      : geometry.PageStride(stripe)) /
                     kBeatBytes));
  set(Argument::kElement,
      ScalarArgument(static_cast<uint64_t>(KvElement::kBf16)));
  set(Argument::kHeadDim, ScalarArgument(host_.shape.head_dim));
  set(Argument::kGroupHeads, ScalarArgument(group()));
  set(Argument::kBlockTokens, ScalarArgument(host_.shape.block_tokens));
  return arguments;
}

absl::Status CardDecode::Finish(OpId op, absl::string_view what,
                                uint32_t layer) {
  using Urgent = PageStream::Urgent;
  // Pages that this layer cannot end without are as urgent.
  const Urgent urgent = !stream_.Verified(layer) ? Urgent::kNothing
                        : what == "upload"       ? Urgent::kUpload
                        : what == "download"     ? Urgent::kDownload
                                                 : Urgent::kNothing;
  while (true) {
    const absl::optional<Completion> completion = tracker_->Take(op);
    if (completion.has_value()) {
      events_.push_back({std::string(what), layer, completion->started,
                         completion->finished});
      return completion->status;
    }
    stream_.Advance(urgent);
    tracker_->Pump(absl::InfiniteFuture());
  }
}

absl::Status CardDecode::StartUnits(uint32_t layer, bool streamed) {
  for (const Launch& launch : launches_) {
    if (launch.streamed != streamed) continue;
    PAGED_KV_ASSIGN_OR_RETURN(
        const OpId op,
        tracker_->StartKernel(units_[launch.slab], Arguments(launch, layer)));
    launched_.push_back(op);
  }
  return absl::OkStatus();
}

absl::Status CardDecode::AwaitStream(uint32_t layer, bool verified) {
  const auto there = [&] {
    return verified ? stream_.Verified(layer) : stream_.Arrived(layer);
  };
  stream_.Advance();
  while (stream_.status().ok() && !there()) {
    tracker_->Pump(absl::InfiniteFuture());
    stream_.Advance();
  }
  return stream_.status();
}

absl::Status CardDecode::AttendOnCard(uint32_t layer, absl::Span<const float> q,
                                      const AttentionOutputs& host_part,
                                      attention::ParallelFor& parallel,
                                      bool* host_done) {
  WriteInputs(layer, q);
  const uint32_t inputs = Checksum(0, at_.status);
  PAGED_KV_ASSIGN_OR_RETURN(const OpId upload,
                            tracker_->StartUpload({slab_.id(), 0, at_.out},
                                                  tracker_->QuietestUpload()));
  PAGED_KV_RETURN_IF_ERROR(Finish(upload, "upload", layer));
  launched_.clear();
  absl::Status status = StartUnits(layer, /*streamed=*/false);
  const size_t on_pool = launched_.size();
  if (status.ok()) status = AwaitStream(layer, /*verified=*/false);
  const uint32_t spoiled = stream_.Spoiled(layer);
  if (status.ok()) status = StartUnits(layer, /*streamed=*/true);
  // While the card runs.
  if (status.ok() && !*host_done) {
    status = AttendOnHost(layer, q, host_part, parallel);
    *host_done = status.ok();
  }
  uint32_t early = 0;
  // The slab is in use until all have ended.
  for (size_t i = 0; i < launched_.size(); ++i) {
    if (i == on_pool && status.ok() && options_.verify_outputs &&
        at_.early < at_.end) {
      status = Read(at_.early, at_.end, layer);
      early = Checksum(at_.early, at_.end);
    }
    status.Update(Finish(launched_[i], "kernel", layer));
  }
  PAGED_KV_RETURN_IF_ERROR(status);
  PAGED_KV_RETURN_IF_ERROR(Read(0, at_.end, layer));
  if (Checksum(0, at_.status) != inputs) {
    return absl::DataLossError("what the kernels read is not what was sent");
  }
  if (options_.verify_outputs) {
    const uint32_t late = Checksum(at_.status, at_.early);
    bool agree = at_.early == at_.end || Checksum(at_.early, at_.end) == early;
    PAGED_KV_RETURN_IF_ERROR(Read(at_.status, at_.early, layer));
    agree = agree && Checksum(at_.status, at_.early) == late;
    if (!agree) {
      return absl::DataLossError("two readings of the outputs do not agree");
    }
  }
  PAGED_KV_RETURN_IF_ERROR(AwaitStream(layer, /*verified=*/true));
  if (stream_.Spoiled(layer) != spoiled) {
    return absl::DataLossError("the kernels read pages that were not right");
  }
  return CheckStatusWords();
}

uint32_t CardDecode::Checksum(uint64_t begin, uint64_t end) const {
  return Crc32c(image_.subspan(begin, end - begin));
}

absl::Status CardDecode::Read(uint64_t begin, uint64_t end, uint32_t layer) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const OpId op, tracker_->StartDownload({slab_.id(), begin, end - begin},
                                             tracker_->QuietestDownload()));
  return Finish(op, "download", layer);
}

absl::Status CardDecode::CheckStatusWords() const {
  for (const Launch& launch : launches_) {
    KernelStatus status;
    std::memcpy(&status, image_.data() + launch.status_offset, sizeof(status));
    PAGED_KV_RETURN_IF_ERROR(ToStatus(kDecodeKernel, status));
    if (status.items_done != launch.items || status.tag != tag_ ||
        status.launches != 1) {
      return absl::InternalError(
          absl::StrCat(kDecodeKernel, " did ", status.items_done, " of ",
                       launch.items, " items in ", status.launches,
                       " launches, tag ", status.tag, " for ", tag_));
    }
  }
  return absl::OkStatus();
}

void CardDecode::TakeOutputs(std::vector<float>* out,
                             std::vector<float>* lse) const {
  const PoolGeometry& geometry = pool_->geometry();
  const uint32_t dim = host_.shape.head_dim;
  const size_t rows = sequences_ * options_.query_heads;
  const std::byte* item = image_.data() + at_.out;
  for (const Launch& launch : launches_) {
    const uint32_t stripe = pool_->SlabStripe(launch.slab);
    for (const Run& run : runs_) {
      if (!Serves(launch, run)) continue;
      const size_t part =
          run.split + (run.streamed ? pool_->geometry().splits() : 0);
      for (uint32_t h = 0; h < geometry.Heads(stripe); ++h) {
        const size_t row = part * rows + run.sequence * options_.query_heads +
                           (geometry.FirstHead(stripe) + h) * group();
        for (uint32_t g = 0; g < group(); ++g) {
          std::memcpy(out->data() + (row + g) * dim,
                      item + g * OutRowBeats(dim) * kBeatBytes,
                      dim * sizeof(float));
        }
        std::memcpy(lse->data() + row,
                    item + group() * OutRowBeats(dim) * kBeatBytes,
                    group() * sizeof(float));
        item += OutBeatsOfItem() * kBeatBytes;
      }
    }
  }
}

}  // namespace paged_kv::fpga_dma
