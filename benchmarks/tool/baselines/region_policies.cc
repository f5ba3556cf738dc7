// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// contiguous: what serving systems did before paging. Nobody knows how long an
//   answer will be, so each request gets one region as long as the longest
//   that the system admits; here, the longest of the trace ("Orca (Max)" in
//   Kwon et al., "Efficient Memory Management for Large Language Model Serving
//   with PagedAttention", SOSP 2023).
// oracle: the same with each request's final length known in advance ("Orca
//   (Oracle)"): the best that one region per request can do.

#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "benchmarks/tool/baselines/baseline_policy.h"
#include "benchmarks/tool/baselines/region_allocator.h"
#include "paged_kv/check.h"

namespace paged_kv::tool {
namespace {

class RegionPolicy : public BaselinePolicy {
 public:
  // `fixed_length` 0: each request's final length.
  RegionPolicy(absl::string_view name, const Trace& trace,
               uint64_t capacity_slots, uint32_t fixed_length)
      : BaselinePolicy(trace, capacity_slots, Unused::kReserved),
        name_(name),
        fixed_length_(fixed_length),
        regions_(capacity_slots) {}

  absl::string_view name() const override { return name_; }

  absl::Status CheckFits(size_t request) const override {
    if (Length(request) <= capacity_slots()) return absl::OkStatus();
    return NeverFits(request, Length(request), capacity_slots());
  }

 protected:
  absl::StatusOr<uint64_t> Hold(size_t request, uint32_t length,
                                uint64_t held) override {
    PAGED_KV_CHECK(held == 0);  // the region is long enough for the whole life
    PAGED_KV_CHECK(length <= Length(request));
    const std::optional<uint64_t> start = regions_.Allocate(Length(request));
    if (!start.has_value()) {
      return NotNow(Length(request), regions_.free_total(), capacity_slots());
    }
    starts_[request] = *start;
    return Length(request);
  }

  void LetGo(size_t request) override {
    const auto it = starts_.find(request);
    regions_.Free(it->second, Length(request));
    starts_.erase(it);
  }

 private:
  uint64_t Length(size_t request) const {
    return fixed_length_ != 0 ? fixed_length_
                              : trace().requests[request].total_tokens();
  }

  const absl::string_view name_;
  const uint32_t fixed_length_;
  RegionAllocator regions_;
  absl::flat_hash_map<size_t, uint64_t> starts_;
};

}  // namespace

std::unique_ptr<MemoryPolicy> MakeContiguousPolicy(const Trace& trace,
                                                   uint64_t capacity_slots) {
  return std::make_unique<RegionPolicy>("contiguous", trace, capacity_slots,
                                        trace.max_total_tokens());
}

std::unique_ptr<MemoryPolicy> MakeOraclePolicy(const Trace& trace,
                                               uint64_t capacity_slots) {
  return std::make_unique<RegionPolicy>("oracle", trace, capacity_slots, 0);
}

}  // namespace paged_kv::tool
