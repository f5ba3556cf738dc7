// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/paged_kv/cost_case.h"

namespace paged_kv::benchmarks {
namespace {

class Nothing final : public CostCase {
 public:
  size_t footprint_bytes() const override { return 0; }
  void Run() override {}
};

constexpr NamedCostCase kCases[] = {
    {"nothing", "run", &MakeNothing},
    {"eviction", "block", &MakeEviction},
    {"naive_eviction", "block", &MakeNaiveEviction},
    {"prefill", "block", &MakePrefill},
    {"allocate_free", "sequence", &MakeAllocateFree},
    {"free", "block", &MakeFree},
    {"append", "token", &MakeAppend},
    {"decode_step", "token", &MakeDecodeStep},
    {"fork_and_write", "fork", &MakeForkAndWrite},
    {"lookup", "block", &MakeLookup},
    {"hit", "block", &MakeHit},
    {"export", "sequence", &MakeExport},
};

}  // namespace

absl::Span<const NamedCostCase> AllCostCases() { return kCases; }

const NamedCostCase* FindCostCase(absl::string_view name) {
  for (const NamedCostCase& named : kCases) {
    if (name == named.name) return &named;
  }
  return nullptr;
}

std::unique_ptr<CostCase> MakeNothing(uint32_t) {
  return std::make_unique<Nothing>();
}

}  // namespace paged_kv::benchmarks
