// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/fragmentation.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/tool/replay_result.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

// The least region of the buddy policy.
constexpr uint32_t kBaselineBlockTokens = 16;

bool HasBlocks(PolicyKind kind) {
  return kind == PolicyKind::kPaged || kind == PolicyKind::kPagedNoShare;
}

absl::StatusOr<FragmentationRow> RunOne(const Trace& trace,
                                        const FragmentationOptions& options,
                                        PolicyKind kind, uint32_t block_tokens,
                                        Progress& progress) {
  using When = UsageMeter::When;
  progress.Start(absl::StrCat(
      PolicyName(kind), " ",
      HasBlocks(kind) ? absl::StrCat(block_tokens) : std::string()));
  PolicyOptions policy;
  policy.kind = kind;
  policy.block_tokens = block_tokens;
  policy.capacity_slots = options.capacity_slots();
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<MemoryPolicy> memory,
                            MakeMemoryPolicy(policy, trace));
  PAGED_KV_ASSIGN_OR_RETURN(
      const ReplayResult result,
      ReplayConcurrently(trace, options.serving, *memory, progress));
  FragmentationRow row;
  row.policy = kind;
  row.block_tokens = HasBlocks(kind) ? block_tokens : 0;
  row.mean_running = result.usage.MeanRunning(When::kUnderLoad);
  row.peak_running = result.usage.peak_running();
  row.of_allocated = result.usage.SharesOfAllocated(When::kUnderLoad);
  row.of_capacity = result.usage.SharesOfCapacity(When::kUnderLoad);
  row.hit_rate = result.HitRate();
  row.preemptions = result.preemptions;
  row.never_fits = result.NeverFits();
  row.simulated_seconds = absl::ToDoubleSeconds(result.duration);
  return row;
}

}  // namespace

ServingOptions FragmentationOptions::Saturated() {
  ServingOptions serving;
  serving.max_running = 1024;
  serving.ignore_arrivals = true;
  return serving;
}

uint64_t FragmentationOptions::capacity_slots() const {
  return static_cast<uint64_t>(memory_gib * static_cast<double>(1u << 30) /
                               serving.model.kv_bytes_per_token);
}

absl::StatusOr<std::vector<FragmentationRow>> RunFragmentation(
    const Trace& trace, const FragmentationOptions& options,
    Progress& progress) {
  std::vector<FragmentationRow> rows;
  for (const PolicyKind kind : AllPolicies()) {
    std::vector<uint32_t> block_sizes = {kBaselineBlockTokens};
    if (HasBlocks(kind)) block_sizes = options.block_sizes;
    for (const uint32_t block_tokens : block_sizes) {
      PAGED_KV_ASSIGN_OR_RETURN(
          FragmentationRow row,
          RunOne(trace, options, kind, block_tokens, progress));
      rows.push_back(std::move(row));
    }
  }
  progress.Clear();
  return rows;
}

}  // namespace paged_kv::tool
