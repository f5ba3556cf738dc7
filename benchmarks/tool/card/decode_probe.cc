// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/decode_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>

#include "absl/types/span.h"
#include "attention/float_formats.h"
#include "benchmarks/tool/card/device_calls.h"
#include "fpga_dma/decode/card_decode.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_registry.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::BankId;
using fpga_dma::kBeatBytes;
using fpga_dma::KernelArgument;
using fpga_dma::OpId;
using fpga_dma::OwnedSlab;
using fpga_dma::PagedDecodeArgument;
using fpga_dma::SlabKind;
using fpga_dma::SlabRange;

constexpr uint64_t kQueryBeats = fpga_dma::RowBeats(DecodeProbe::kHeadDim);
constexpr uint64_t kOutBeats = fpga_dma::OutRowBeats(DecodeProbe::kHeadDim) + 1;
constexpr uint64_t kTableBytes =
    (DecodeProbe::kPages * sizeof(uint32_t) + kBeatBytes - 1) / kBeatBytes *
    kBeatBytes;

uint16_t RandomBf16(std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  return attention::F32ToBf16(normal(random));
}

}  // namespace

std::vector<uint32_t> DecodeProbe::Units(const fpga_dma::DeviceInfo& info) {
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < info.compute_units.size(); ++i) {
    if (info.compute_units[i].kernel == fpga_dma::kDecodeKernel)
      units.push_back(i);
  }
  return units;
}

absl::StatusOr<std::unique_ptr<DecodeProbe>> DecodeProbe::Create(
    fpga_dma::Device* device, uint32_t unit, uint64_t seed) {
  std::unique_ptr<DecodeProbe> probe(new DecodeProbe(device, unit));
  PAGED_KV_RETURN_IF_ERROR(probe->Setup(seed));
  return probe;
}

absl::StatusOr<OwnedSlab> DecodeProbe::MakeSlab(uint32_t argument,
                                                uint64_t bytes) {
  const BankId bank =
      device_->info().compute_units[unit_].argument_banks[argument];
  return OwnedSlab::Create(device_, bank, bytes, SlabKind::kHostVisible);
}

absl::Status DecodeProbe::Upload(const OwnedSlab& slab, uint64_t bytes) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const OpId op, device_->StartUpload(SlabRange{slab.id(), 0, bytes}, 0));
  return AwaitOperation(*device_, op).status();
}

absl::Status DecodeProbe::Setup(uint64_t seed) {
  const auto slab = [this](PagedDecodeArgument argument, uint64_t bytes) {
    return MakeSlab(static_cast<uint32_t>(argument), bytes);
  };
  bank_ = device_->info()
              .compute_units[unit_]
              .argument_banks[static_cast<uint32_t>(PagedDecodeArgument::kKv)];
  PAGED_KV_ASSIGN_OR_RETURN(
      pages_, slab(PagedDecodeArgument::kKv, kPages * kPageBytes));
  PAGED_KV_ASSIGN_OR_RETURN(work_,
                            slab(PagedDecodeArgument::kWork, 2 * kBeatBytes));
  PAGED_KV_ASSIGN_OR_RETURN(table_,
                            slab(PagedDecodeArgument::kTable, kTableBytes));
  PAGED_KV_ASSIGN_OR_RETURN(
      queries_, slab(PagedDecodeArgument::kQueries, kQueryBeats * kBeatBytes));
  PAGED_KV_ASSIGN_OR_RETURN(
      out_, slab(PagedDecodeArgument::kOut, kOutBeats * kBeatBytes));
  PAGED_KV_ASSIGN_OR_RETURN(status_,
                            slab(PagedDecodeArgument::kStatus, kBeatBytes));

  std::mt19937_64 random(seed);
  for (const OwnedSlab* values : {&pages_, &queries_}) {
    PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<std::byte> image,
                              device_->HostImage(values->id()));
    for (size_t at = 0; at + 2 <= image.size(); at += 2) {
      const uint16_t value = RandomBf16(random);
      std::memcpy(image.data() + at, &value, sizeof(value));
    }
    PAGED_KV_RETURN_IF_ERROR(Upload(*values, image.size()));
  }
  std::vector<uint32_t> order(kPages);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<std::byte> table,
                            device_->HostImage(table_.id()));
  std::memcpy(table.data(), order.data(), order.size() * sizeof(uint32_t));
  return Upload(table_, kTableBytes);
}

absl::Status DecodeProbe::Prepare(uint32_t pages) {
  fpga_dma::WorkListHeader header = {};
  header.magic = fpga_dma::kWorkListMagic;
  header.kernel = fpga_dma::KernelId::kPagedDecode;
  header.num_items = 1;
  fpga_dma::DecodeItem item = {};
  item.table_step = 1;
  item.num_tokens = pages * kBlockTokens;
  item.lse_beat = static_cast<uint32_t>(kOutBeats - 1);
  item.scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<std::byte> work,
                            device_->HostImage(work_.id()));
  std::memcpy(work.data(), &header, sizeof(header));
  std::memcpy(work.data() + kBeatBytes, &item, sizeof(item));
  PAGED_KV_RETURN_IF_ERROR(Upload(work_, 2 * kBeatBytes));
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<std::byte> status,
                            device_->HostImage(status_.id()));
  std::memset(status.data(), 0, kBeatBytes);
  return Upload(status_, kBeatBytes);
}

absl::StatusOr<OpId> DecodeProbe::Start() {
  const KernelArgument arguments[] = {
      fpga_dma::AddressArgument(pages_.id()),
      fpga_dma::AddressArgument(work_.id()),
      fpga_dma::AddressArgument(table_.id()),
      fpga_dma::AddressArgument(queries_.id()),
      fpga_dma::AddressArgument(out_.id()),
      fpga_dma::AddressArgument(status_.id()),
      fpga_dma::ScalarArgument(1),       // max_items
      fpga_dma::ScalarArgument(kPages),  // table_entries
      fpga_dma::ScalarArgument(kQueryBeats),
      fpga_dma::ScalarArgument(kOutBeats),
      fpga_dma::ScalarArgument(kPages),
      fpga_dma::ScalarArgument(kPageBytes / kBeatBytes),
      fpga_dma::ScalarArgument(
          static_cast<uint32_t>(fpga_dma::KvElement::kBf16)),
      fpga_dma::ScalarArgument(kHeadDim),
      fpga_dma::ScalarArgument(1),  // group_heads
      fpga_dma::ScalarArgument(kBlockTokens),
  };
  static_assert(std::size(arguments) ==
                static_cast<size_t>(PagedDecodeArgument::kCount));
  return device_->StartKernel(unit_, arguments);
}

absl::Status DecodeProbe::CheckStatus() {
  PAGED_KV_ASSIGN_OR_RETURN(
      const OpId op,
      device_->StartDownload(SlabRange{status_.id(), 0, kBeatBytes}, 0));
  PAGED_KV_RETURN_IF_ERROR(AwaitOperation(*device_, op).status());
  PAGED_KV_ASSIGN_OR_RETURN(const absl::Span<std::byte> image,
                            device_->HostImage(status_.id()));
  fpga_dma::KernelStatus status;
  std::memcpy(&status, image.data(), sizeof(status));
  return fpga_dma::ToStatus(fpga_dma::kDecodeKernel, status);
}

}  // namespace paged_kv::tool
