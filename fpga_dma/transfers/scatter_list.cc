// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/transfers/scatter_list.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "paged_kv/check.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint64_t kScatterStatus = 0;
constexpr uint64_t kGatherStatus = kBeatBytes;
constexpr uint64_t kScatterWork = ScatterList::kListsOffset;

constexpr uint64_t GatherWork(uint64_t runs) {
  return kScatterWork + kBeatBytes * (1 + runs);
}

std::vector<KernelArgument> Arguments(
    uint64_t runs, KernelArgument source, uint64_t source_beats,
    KernelArgument target, uint64_t target_pages, uint64_t target_page_beats,
    KernelArgument work, KernelArgument status) {
  std::vector<KernelArgument> arguments(
      static_cast<size_t>(KvScatterArgument::kCount));
  const auto set = [&](KvScatterArgument which, KernelArgument argument) {
    arguments[static_cast<size_t>(which)] = argument;
  };
  set(KvScatterArgument::kSlab, source);
  set(KvScatterArgument::kKv, target);
  set(KvScatterArgument::kWork, work);
  set(KvScatterArgument::kStatus, status);
  set(KvScatterArgument::kMaxItems, ScalarArgument(runs));
  set(KvScatterArgument::kSourceBeats, ScalarArgument(source_beats));
  set(KvScatterArgument::kNumPages, ScalarArgument(target_pages));
  set(KvScatterArgument::kPageStrideBeats, ScalarArgument(target_page_beats));
  return arguments;
}

absl::Status Check(absl::string_view what, const std::byte* word, uint64_t runs,
                   uint32_t tag) {
  KernelStatus status;
  std::memcpy(&status, word, sizeof(status));
  KernelStatus expected{};
  expected.item = status.item;  // means nothing without an error
  expected.items_done = static_cast<uint32_t>(runs);
  expected.tag = tag;
  expected.launches = 1;
  if (std::memcmp(&status, &expected, sizeof(expected)) == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat(kScatterKernel, " (", what, ") of ", runs,
                   " runs reports error ", static_cast<uint32_t>(status.code),
                   " at item ", status.item, ", detail ", status.detail, ", ",
                   status.items_done, " done, ", status.launches, " launches"));
}

}  // namespace

void ScatterList::Write(absl::Span<const ScatterRun> runs,
                        const ScatterPool& pool, uint32_t tag,
                        absl::Span<std::byte> lists) {
  PAGED_KV_CHECK(lists.size() == Bytes(runs.size()));
  std::memset(lists.data(), 0, lists.size());
  WorkListHeader header{};
  header.magic = kWorkListMagic;
  header.kernel = KernelId::kKvScatter;
  header.num_items = static_cast<uint32_t>(runs.size());
  header.tag = tag;
  std::byte* scatter = lists.data() + kScatterWork;
  std::byte* gather = lists.data() + GatherWork(runs.size());
  std::memcpy(scatter, &header, sizeof(header));
  std::memcpy(gather, &header, sizeof(header));
  uint32_t packed_beat = 0;
  for (const ScatterRun& run : runs) {
    ScatterItem item{};
    item.num_beats = run.num_beats;
    item.source_beat = packed_beat;
    item.page = run.page;
    item.page_beat = run.page_beat;
    scatter += kBeatBytes;
    std::memcpy(scatter, &item, sizeof(item));
    const uint64_t pool_beat = run.page * pool.page_beats + run.page_beat;
    PAGED_KV_CHECK(pool_beat < (uint64_t{1} << 32));
    item.source_beat = static_cast<uint32_t>(pool_beat);
    item.page = 0;
    item.page_beat = packed_beat;
    gather += kBeatBytes;
    std::memcpy(gather, &item, sizeof(item));
    packed_beat += run.num_beats;
  }
}

std::vector<KernelArgument> ScatterList::ScatterArguments(
    const StagingSlabs& staging, uint64_t runs, uint64_t beats,
    const ScatterPool& pool) {
  return Arguments(runs, AddressArgument(staging.data), beats,
                   AddressArgument(pool.slab), pool.num_pages, pool.page_beats,
                   AddressArgument(staging.lists, kScatterWork),
                   AddressArgument(staging.lists, kScatterStatus));
}

std::vector<KernelArgument> ScatterList::GatherArguments(
    const StagingSlabs& staging, uint64_t runs, uint64_t beats,
    const ScatterPool& pool) {
  return Arguments(runs, AddressArgument(pool.slab),
                   pool.num_pages * pool.page_beats,
                   AddressArgument(staging.data), 1, beats,
                   AddressArgument(staging.lists, GatherWork(runs)),
                   AddressArgument(staging.lists, kGatherStatus));
}

absl::Status ScatterList::CheckScatter(absl::Span<const std::byte> lists,
                                       uint64_t runs, uint32_t tag) {
  return Check("slab to pages", lists.data() + kScatterStatus, runs, tag);
}

absl::Status ScatterList::CheckGather(absl::Span<const std::byte> lists,
                                      uint64_t runs, uint32_t tag) {
  return Check("pages to slab", lists.data() + kGatherStatus, runs, tag);
}

}  // namespace paged_kv::fpga_dma
