// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the kernels on bounded memory.

#include <algorithm>
#include <cstring>
#include <vector>

#include "fpga_dma/kernels/beat.h"
#include "fpga_dma/kernels/kernel_arguments.h"
#include "fpga_dma/kernels/kernel_checks.h"
#include "fpga_dma/kernels/kernel_entry_points.h"

namespace paged_kv::fpga_dma {
namespace {

// Stages that run one after the other keep a whole launch in their streams.
// Items do not depend on each other, so a launch is run as several short ones,
// each with at least this many tokens of a slice (a few MiB of K and V).
constexpr uint64_t kTokensPerRun = 16384;

struct RunState {
  const KernelEntryPoints& entry_points;
  absl::Span<const BoundArgument> arguments;
};

void CallPagedDecode(const RunState& run, const Beat* work, Beat* status,
                     uint32_t max_items) {
  using A = PagedDecodeArgument;
  const absl::Span<const BoundArgument> args = run.arguments;
  run.entry_points.paged_decode(
      Address<const Beat>(args, A::kKv), work,
      Address<const uint32_t>(args, A::kTable),
      Address<const Beat>(args, A::kQueries), Address<Beat>(args, A::kOut),
      status, max_items, Scalar(args, A::kTableEntries),
      Scalar(args, A::kQueryBeats), Scalar(args, A::kOutBeats),
      Scalar(args, A::kNumPages), Scalar(args, A::kPageStrideBeats),
      Scalar(args, A::kElement), Scalar(args, A::kHeadDim),
      Scalar(args, A::kGroupHeads), Scalar(args, A::kBlockTokens));
}

// How many items from `begin` on make a short launch.
uint32_t ItemsOfRun(absl::Span<const BoundArgument> arguments, uint32_t begin,
                    uint32_t end) {
  uint64_t tokens = 0;
  uint32_t i = begin;
  while (i < end && tokens < kTokensPerRun) {
    tokens += WorkItem<DecodeItem>(arguments, PagedDecodeArgument::kWork, i)
                  .num_tokens;
    ++i;
  }
  return i - begin;
}

// One launch as several. Their list is a copy, their status is not the
// launch's, which changes once.
void RunPagedDecode(const RunState& run) {
  using A = PagedDecodeArgument;
  const Beat* work = Address<const Beat>(run.arguments, A::kWork);
  Beat* status = Address<Beat>(run.arguments, A::kStatus);
  const uint32_t max_items = Scalar(run.arguments, A::kMaxItems);
  const uint32_t num_items = Word(work[0], 2);
  KernelStatus before;
  std::memcpy(&before, status, sizeof(before));
  if (num_items > std::min(max_items, kMaxWorkItems) ||
      before.code != KernelError::kOk) {
    CallPagedDecode(run, work, status, max_items);
    return;
  }
  std::vector<Beat> part;
  KernelStatus total = before;
  uint32_t begin = 0;
  do {
    const uint32_t items = ItemsOfRun(run.arguments, begin, num_items);
    part.assign(1, work[0]);
    SetWord(&part[0], 2, items);
    part.insert(part.end(), work + 1 + begin, work + 1 + begin + items);
    Beat part_status = 0;
    CallPagedDecode(run, part.data(), &part_status, items);
    std::memcpy(&total, &part_status, sizeof(total));
    total.item += begin;
    total.items_done += begin;
    begin += items;
  } while (begin < num_items && total.code == KernelError::kOk);
  total.launches = before.launches + 1;
  std::memcpy(static_cast<void*>(status), &total, sizeof(total));
}

void RunKvAppend(const RunState& run) {
  using A = KvAppendArgument;
  const absl::Span<const BoundArgument> args = run.arguments;
  run.entry_points.kv_append(
      Address<const Beat>(args, A::kKvIn), Address<Beat>(args, A::kKvOut),
      Address<const Beat>(args, A::kWork), Address<const Beat>(args, A::kRows),
      Address<Beat>(args, A::kStatus), Scalar(args, A::kMaxItems),
      Scalar(args, A::kSourceBeats), Scalar(args, A::kNumPages),
      Scalar(args, A::kPageStrideBeats), Scalar(args, A::kElement),
      Scalar(args, A::kHeadDim), Scalar(args, A::kBlockTokens));
}

void RunKvCopy(const RunState& run) {
  using A = KvCopyArgument;
  const absl::Span<const BoundArgument> args = run.arguments;
  run.entry_points.kv_copy(
      Address<const Beat>(args, A::kSource), Address<Beat>(args, A::kTarget),
      Address<const Beat>(args, A::kWork), Address<Beat>(args, A::kStatus),
      Scalar(args, A::kMaxItems), Scalar(args, A::kSourcePages),
      Scalar(args, A::kSourcePageStrideBeats), Scalar(args, A::kTargetPages),
      Scalar(args, A::kTargetPageStrideBeats), Scalar(args, A::kElement),
      Scalar(args, A::kHeadDim), Scalar(args, A::kBlockTokens));
}

void RunKvScatter(const RunState& run) {
  using A = KvScatterArgument;
  const absl::Span<const BoundArgument> args = run.arguments;
  run.entry_points.kv_scatter(
      Address<const Beat>(args, A::kSlab), Address<Beat>(args, A::kKv),
      Address<const Beat>(args, A::kWork), Address<Beat>(args, A::kStatus),
      Scalar(args, A::kMaxItems), Scalar(args, A::kSourceBeats),
      Scalar(args, A::kNumPages), Scalar(args, A::kPageStrideBeats));
}

}  // namespace

absl::Status RunKernel(const KernelEntryPoints& entry_points, KernelId kernel,
                       absl::Span<const BoundArgument> arguments) {
  for (const KernelSpec& spec : Kernels()) {
    if (spec.id != kernel) continue;
    const absl::Status status = CheckArguments(spec, arguments);
    if (!status.ok()) return status;
    const RunState run = {entry_points, arguments};
    switch (kernel) {
      case KernelId::kPagedDecode:
        RunPagedDecode(run);
        break;
      case KernelId::kKvAppend:
        RunKvAppend(run);
        break;
      case KernelId::kKvCopy:
        RunKvCopy(run);
        break;
      case KernelId::kKvScatter:
        RunKvScatter(run);
        break;
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("no such kernel");
}

}  // namespace paged_kv::fpga_dma
