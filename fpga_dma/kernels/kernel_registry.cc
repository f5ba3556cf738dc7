// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "fpga_dma/kernels/kernel_registry.h"

#include "absl/strings/str_cat.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_checks.h"
#include "fpga_dma/kernels/kernel_entry_points.h"
#include "fpga_dma/kernels/kernel_work.h"

namespace paged_kv::fpga_dma {
namespace {

constexpr uint32_t kNone = KernelArgumentSpec::kNone;

// Scores and Values of paged_decode each do 256 multiply-adds in 2 cycles,
// whatever the elements are.
constexpr uint32_t kDecodeFlopsPerCycle = 2 * 2 * 128;

constexpr KernelArgumentSpec ScalarSpec(absl::string_view name) {
  return {name, false, 4};
}

enum class Access { kRead, kWrite, kBoth };
template <typename Index>
constexpr KernelArgumentSpec PoolSpec(absl::string_view name, Access access,
                                      Index pages, Index stride_beats) {
  return {name,
          true,
          8,
          kKvAlignmentBytes,
          access != Access::kWrite,
          access != Access::kRead,
          static_cast<uint32_t>(pages),
          static_cast<uint32_t>(stride_beats),
          kBeatBytes};
}
template <typename Index>
constexpr KernelArgumentSpec ArraySpec(absl::string_view name, Access access,
                                       Index count, uint32_t unit_bytes,
                                       uint32_t extra_units = 0) {
  return {name,
          true,
          8,
          kBeatBytes,
          access != Access::kWrite,
          access != Access::kRead,
          static_cast<uint32_t>(count),
          kNone,
          unit_bytes,
          extra_units};
}
// One header and the items.
template <typename Index>
constexpr KernelArgumentSpec WorkSpec(Index max_items) {
  return ArraySpec("work", Access::kRead, max_items, kBeatBytes, 1);
}
constexpr KernelArgumentSpec StatusSpec() {
  return ArraySpec("status", Access::kBoth, kNone, kBeatBytes);
}

using Decode = PagedDecodeArgument;
constexpr KernelArgumentSpec kDecodeArguments[] = {
    PoolSpec("kv", Access::kRead, Decode::kNumPages, Decode::kPageStrideBeats),
    WorkSpec(Decode::kMaxItems),
    ArraySpec("table", Access::kRead, Decode::kTableEntries, sizeof(uint32_t)),
    ArraySpec("queries", Access::kRead, Decode::kQueryBeats, kBeatBytes),
    ArraySpec("out", Access::kWrite, Decode::kOutBeats, kBeatBytes),
    StatusSpec(),
    ScalarSpec("max_items"),
    ScalarSpec("table_entries"),
    ScalarSpec("query_beats"),
    ScalarSpec("out_beats"),
    ScalarSpec("num_pages"),
    ScalarSpec("page_stride_beats"),
    ScalarSpec("element"),
    ScalarSpec("head_dim"),
    ScalarSpec("group_heads"),
    ScalarSpec("block_tokens"),
};
static_assert(std::size(kDecodeArguments) ==
              static_cast<size_t>(Decode::kCount));

using Append = KvAppendArgument;
constexpr KernelArgumentSpec kAppendArguments[] = {
    PoolSpec("kv_in", Access::kRead, Append::kNumPages,
             Append::kPageStrideBeats),
    PoolSpec("kv_out", Access::kWrite, Append::kNumPages,
             Append::kPageStrideBeats),
    WorkSpec(Append::kMaxItems),
    ArraySpec("rows", Access::kRead, Append::kSourceBeats, kBeatBytes),
    StatusSpec(),
    ScalarSpec("max_items"),
    ScalarSpec("source_beats"),
    ScalarSpec("num_pages"),
    ScalarSpec("page_stride_beats"),
    ScalarSpec("element"),
    ScalarSpec("head_dim"),
    ScalarSpec("block_tokens"),
};
static_assert(std::size(kAppendArguments) ==
              static_cast<size_t>(Append::kCount));

using Copy = KvCopyArgument;
constexpr KernelArgumentSpec kCopyArguments[] = {
    PoolSpec("source", Access::kRead, Copy::kSourcePages,
             Copy::kSourcePageStrideBeats),
    PoolSpec("target", Access::kWrite, Copy::kTargetPages,
             Copy::kTargetPageStrideBeats),
    WorkSpec(Copy::kMaxItems),
    StatusSpec(),
    ScalarSpec("max_items"),
    ScalarSpec("source_pages"),
    ScalarSpec("source_page_stride_beats"),
    ScalarSpec("target_pages"),
    ScalarSpec("target_page_stride_beats"),
    ScalarSpec("element"),
    ScalarSpec("head_dim"),
    ScalarSpec("block_tokens"),
};
static_assert(std::size(kCopyArguments) == static_cast<size_t>(Copy::kCount));

using Scatter = KvScatterArgument;
constexpr KernelArgumentSpec kScatterArguments[] = {
    ArraySpec("slab", Access::kRead, Scatter::kSourceBeats, kBeatBytes),
    PoolSpec("kv", Access::kWrite, Scatter::kNumPages,
             Scatter::kPageStrideBeats),
    WorkSpec(Scatter::kMaxItems),
    StatusSpec(),
    ScalarSpec("max_items"),
    ScalarSpec("source_beats"),
    ScalarSpec("num_pages"),
    ScalarSpec("page_stride_beats"),
};
static_assert(std::size(kScatterArguments) ==
              static_cast<size_t>(Scatter::kCount));

constexpr KernelEntryPoints kEntryPoints = {paged_decode, kv_append, kv_copy,
                                            kv_scatter};

template <KernelId id>
absl::Status Run(absl::Span<const BoundArgument> arguments) {
  return RunKernel(kEntryPoints, id, arguments);
}

const KernelSpec kKernels[] = {
    {KernelId::kPagedDecode, "paged_decode", kDecodeArguments,
     kDecodeFlopsPerCycle, Run<KernelId::kPagedDecode>, PagedDecodeWork},
    {KernelId::kKvAppend, "kv_append", kAppendArguments, 0,
     Run<KernelId::kKvAppend>, KvAppendWork},
    {KernelId::kKvCopy, "kv_copy", kCopyArguments, 0, Run<KernelId::kKvCopy>,
     KvCopyWork},
    {KernelId::kKvScatter, "kv_scatter", kScatterArguments, 0,
     Run<KernelId::kKvScatter>, KvScatterWork},
};

// What KernelStatus::detail is, or "" if it says nothing.
const char* ErrorText(KernelError error) {
  switch (error) {
    case KernelError::kOk:
      return "no error";
    case KernelError::kBadHeader:
      return "the work list has a wrong magic or is for another kernel: ";
    case KernelError::kTooManyItems:
      return "more items than the list holds: ";
    case KernelError::kBadGeometry:
      return "no such geometry: ";
    case KernelError::kZeroLength:
      return "an item of length ";
    case KernelError::kTableRange:
      return "beyond the page table: entry ";
    case KernelError::kPageIndex:
      return "beyond the pool: page index ";
    case KernelError::kSliceRange:
      return "a slice beyond its page, or a stride below a slice: beat ";
    case KernelError::kSlotRange:
      return "beyond the block: slot ";
    case KernelError::kQueryRange:
      return "beyond the queries: beat ";
    case KernelError::kOutRange:
      return "beyond the outputs: beat ";
    case KernelError::kSourceRange:
      return "beyond the packed source: beat ";
    case KernelError::kBadScale:
      return "a scale that is not finite, or of int8 not above 0, with bits ";
    case KernelError::kAlignment:
      return "misaligned, or beyond 2^48: address ";
    case KernelError::kBusError:
      return "memory answered with an error, detail ";
  }
  return "an unknown error code, detail ";
}

}  // namespace

absl::Span<const KernelSpec> Kernels() { return kKernels; }

const KernelSpec* FindKernel(absl::string_view name) {
  for (const KernelSpec& kernel : kKernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

absl::Status ToStatus(absl::string_view kernel, const KernelStatus& status) {
  if (status.code == KernelError::kOk) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      kernel, " item ", status.item, ": ", ErrorText(status.code),
      status.detail, " (code ", static_cast<uint32_t>(status.code), ")"));
}

}  // namespace paged_kv::fpga_dma
