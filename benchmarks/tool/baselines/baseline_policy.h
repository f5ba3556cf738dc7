// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_BASELINES_BASELINE_POLICY_H_
#define PAGED_KV_BENCHMARKS_TOOL_BASELINES_BASELINE_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/tool/memory_policy.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/cache_stats.h"

namespace paged_kv::tool {

// What the policies that share nothing have in common: who is running, how
// long it is and how many slots are held for it. A policy only says where
// they come from.
class BaselinePolicy : public MemoryPolicy {
 public:
  uint64_t capacity_slots() const override { return capacity_slots_; }
  absl::StatusOr<AdmittedTokens> Admit(size_t request, uint32_t prompt,
                                       uint32_t chunk) override;
  absl::Status Grow(size_t request, uint32_t length) override;
  SlotCounts Release(size_t request) override;
  uint64_t AvailableSlots() const override { return capacity_slots_ - held_; }
  SlotCounts Slots() const override;

 protected:
  // What the slots that are held and not yet used are called.
  enum class Unused { kTail, kReserved };

  BaselinePolicy(const Trace& trace, uint64_t capacity_slots, Unused unused)
      : trace_(&trace), capacity_slots_(capacity_slots), unused_(unused) {}

  // Makes the request hold at least `length` slots, and returns how many. It
  // held `held` before (0: it is new). ResourceExhausted if that is not
  // possible now; then nothing changes.
  virtual absl::StatusOr<uint64_t> Hold(size_t request, uint32_t length,
                                        uint64_t held) = 0;
  // Lets go of everything that the request holds.
  virtual void LetGo(size_t request) = 0;

  const Trace& trace() const { return *trace_; }

 private:
  struct Running {
    uint32_t length = 0;
    uint64_t held = 0;
  };

  SlotCounts Counts(uint64_t live, uint64_t held) const;

  const Trace* trace_;
  const uint64_t capacity_slots_;
  const Unused unused_;
  uint64_t live_ = 0;
  uint64_t held_ = 0;
  absl::flat_hash_map<size_t, Running> running_;
};

// "need 5 slots, 3 of 10 free".
absl::Status NotNow(uint64_t needed, uint64_t free, uint64_t capacity);
absl::Status NeverFits(size_t request, uint64_t needed, uint64_t capacity);

// `trace` is borrowed by all of them.
std::unique_ptr<MemoryPolicy> MakeContiguousPolicy(const Trace& trace,
                                                   uint64_t capacity_slots);
std::unique_ptr<MemoryPolicy> MakeOraclePolicy(const Trace& trace,
                                               uint64_t capacity_slots);
// Regions are at least `min_slots` long, a power of two.
std::unique_ptr<MemoryPolicy> MakeBuddyPolicy(const Trace& trace,
                                              uint64_t capacity_slots,
                                              uint32_t min_slots);
std::unique_ptr<MemoryPolicy> MakeCellsPolicy(const Trace& trace,
                                              uint64_t capacity_slots);
std::unique_ptr<MemoryPolicy> MakeLargePagesPolicy(const Trace& trace,
                                                   uint64_t capacity_slots,
                                                   uint64_t page_bytes);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_BASELINES_BASELINE_POLICY_H_
