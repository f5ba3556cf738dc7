// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/memory_policy.h"

#include <array>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/tool/baselines/baseline_policy.h"
#include "benchmarks/tool/paged_policy.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "paged_kv/block_shape.h"

namespace paged_kv::tool {
namespace {

constexpr std::array kPolicies = {
    PolicyKind::kPaged,         PolicyKind::kPagedNoShare,
    PolicyKind::kContiguous,    PolicyKind::kBuddy,
    PolicyKind::kCells,         PolicyKind::kLargePages,
    PolicyKind::kLargePages64K, PolicyKind::kOracle};

constexpr std::array kEvictions = {Eviction::kLru, Eviction::kSegmentedLru};

// 2^40 slots; every sum of slots then fits 64 bits with room to spare.
constexpr uint64_t kMaxCapacitySlots = uint64_t{1} << 40;

struct AppendPolicyName {
  void operator()(std::string* out, PolicyKind kind) const {
    absl::StrAppend(out, PolicyName(kind));
  }
};

}  // namespace

absl::string_view PolicyName(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kPaged:
      return "paged";
    case PolicyKind::kPagedNoShare:
      return "paged_noshare";
    case PolicyKind::kContiguous:
      return "contiguous";
    case PolicyKind::kBuddy:
      return "buddy";
    case PolicyKind::kCells:
      return "cells";
    case PolicyKind::kLargePages:
      return "large_pages";
    case PolicyKind::kLargePages64K:
      return "large_pages_64k";
    case PolicyKind::kOracle:
      return "oracle";
  }
  return "unknown";
}

absl::Span<const PolicyKind> AllPolicies() { return kPolicies; }

absl::StatusOr<PolicyKind> ParsePolicy(absl::string_view name) {
  for (const PolicyKind kind : kPolicies) {
    if (name == PolicyName(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown policy ", QuoteForError(name), "; use one of ",
                   absl::StrJoin(kPolicies, ", ", AppendPolicyName())));
}

absl::string_view EvictionName(Eviction eviction) {
  return eviction == Eviction::kLru ? "lru" : "slru";
}

absl::StatusOr<Eviction> ParseEviction(absl::string_view name) {
  for (const Eviction eviction : kEvictions) {
    if (name == EvictionName(eviction)) return eviction;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown eviction ", QuoteForError(name), "; use lru or slru"));
}

absl::StatusOr<std::unique_ptr<MemoryPolicy>> MakeMemoryPolicy(
    const PolicyOptions& options, const Trace& trace) {
  if (options.block_tokens < 1 || options.block_tokens > kMaxBlockTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_tokens ", options.block_tokens,
                     " is not from 1 to ", kMaxBlockTokens));
  }
  if (options.capacity_slots < options.block_tokens ||
      options.capacity_slots > kMaxCapacitySlots) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pool of ", options.capacity_slots, " slots is not from one block (",
        options.block_tokens, ") to ", kMaxCapacitySlots));
  }
  const uint64_t slots = options.capacity_slots;
  switch (options.kind) {
    case PolicyKind::kPaged:
    case PolicyKind::kPagedNoShare:
      return MakePagedPolicy(options, trace);
    case PolicyKind::kContiguous:
      return MakeContiguousPolicy(trace, slots);
    case PolicyKind::kBuddy:
      return MakeBuddyPolicy(trace, slots,
                             absl::bit_ceil(options.block_tokens));
    case PolicyKind::kCells:
      return MakeCellsPolicy(trace, slots);
    case PolicyKind::kLargePages:
      return MakeLargePagesPolicy(trace, slots, uint64_t{2} << 20);
    case PolicyKind::kLargePages64K:
      return MakeLargePagesPolicy(trace, slots, uint64_t{64} << 10);
    case PolicyKind::kOracle:
      return MakeOraclePolicy(trace, slots);
  }
  return absl::InvalidArgumentError("unknown policy");
}

}  // namespace paged_kv::tool
