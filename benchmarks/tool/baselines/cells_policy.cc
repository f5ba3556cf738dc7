// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A unified cache of single cells, as llama.cpp keeps it: each token takes any
// free cell, found by a search from the last one, and nothing is reserved. No
// slot is ever wasted; the price is paid elsewhere. Every step's attention
// reads all cells up to the highest used one (rounded up to 256) and masks
// those of other requests, so the memory that the kernel reads grows with the
// whole batch and not with the request.

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "benchmarks/tool/baselines/baseline_policy.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

class CellsPolicy : public BaselinePolicy {
 public:
  CellsPolicy(const Trace& trace, uint64_t capacity_slots)
      : BaselinePolicy(trace, capacity_slots, Unused::kTail),
        used_(capacity_slots, false) {}

  absl::string_view name() const override { return "cells"; }

  absl::Status CheckFits(size_t request) const override {
    const uint64_t needed = trace().requests[request].total_tokens();
    if (needed <= capacity_slots()) return absl::OkStatus();
    return NeverFits(request, needed, capacity_slots());
  }

 protected:
  absl::StatusOr<uint64_t> Hold(size_t request, uint32_t length,
                                uint64_t held) override {
    const uint64_t needed = length - held;
    const uint64_t free = used_.size() - used_count_;
    if (needed > free) return NotNow(needed, free, capacity_slots());
    std::vector<uint64_t>& cells = cells_[request];
    PAGED_KV_CHECK(cells.size() == held);
    for (uint64_t i = 0; i < needed; ++i) cells.push_back(TakeFree());
    return length;
  }

  void LetGo(size_t request) override {
    const auto it = cells_.find(request);
    for (const uint64_t cell : it->second) used_[cell] = false;
    used_count_ -= it->second.size();
    cells_.erase(it);
  }

 private:
  // REQUIRES: one is free.
  uint64_t TakeFree() {
    while (used_[head_]) head_ = (head_ + 1) % used_.size();
    used_[head_] = true;
    ++used_count_;
    return head_;
  }

  std::vector<bool> used_;
  uint64_t used_count_ = 0;
  uint64_t head_ = 0;
  absl::flat_hash_map<size_t, std::vector<uint64_t>> cells_;
};

}  // namespace

std::unique_ptr<MemoryPolicy> MakeCellsPolicy(const Trace& trace,
                                              uint64_t capacity_slots) {
  return std::make_unique<CellsPolicy>(trace, capacity_slots);
}

}  // namespace paged_kv::tool
