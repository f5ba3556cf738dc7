// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One interface over the ways to give KV memory to requests, so that they can
// be compared on the same input and the same memory.

#ifndef PAGED_KV_BENCHMARKS_TOOL_MEMORY_POLICY_H_
#define PAGED_KV_BENCHMARKS_TOOL_MEMORY_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "benchmarks/tool/trace.h"
#include "paged_kv/cache_stats.h"

namespace paged_kv::tool {

// Answer of MemoryPolicy::Admit().
struct AdmittedTokens {
  uint32_t cached = 0;    // prompt tokens whose K/V was found
  uint32_t computed = 0;  // tokens that the first step computes
};

// Memory for the K/V of the requests of one trace, counted in slots (tokens).
//
// Life of a request: Admit, Grow until it has all its tokens, Release. A
// preempted request is released early and admitted again, with the tokens
// that it has already generated as part of its prompt.
//
// Every call that fails leaves the policy as it was. ResourceExhausted: not
// now. OutOfRange: never, whatever is released.
//
// Thread safety: none.
// Invariants: Slots().Total() == capacity_slots() after every call.
class MemoryPolicy {
 public:
  virtual ~MemoryPolicy() = default;

  virtual absl::string_view name() const = 0;
  virtual uint64_t capacity_slots() const = 0;

  // OutOfRange if the request could not be served even alone.
  virtual absl::Status CheckFits(size_t request) const = 0;

  // Takes the request in: finds what it can of its first `prompt` tokens in
  // the cache and makes room for the next `chunk` of the rest, which are then
  // written. REQUIRES: not admitted; 0 < prompt <= its total length; chunk > 0.
  virtual absl::StatusOr<AdmittedTokens> Admit(size_t request, uint32_t prompt,
                                               uint32_t chunk) = 0;

  // Makes room for, and writes, the tokens up to `length`. REQUIRES: admitted;
  // `length` is more than before and at most its total length.
  virtual absl::Status Grow(size_t request, uint32_t length) = 0;

  // Gives the request's memory back. Returns the states of the slots that it
  // held, shared ones included. REQUIRES: admitted.
  virtual SlotCounts Release(size_t request) = 0;

  // At least so many slots does Admit() take in the end for `prompt` tokens.
  virtual uint64_t SlotsToAdmit(size_t /*request*/, uint32_t prompt) const {
    return prompt;
  }

  // Slots that a request could get now, be it by eviction.
  virtual uint64_t AvailableSlots() const = 0;

  // The state of every slot.
  virtual SlotCounts Slots() const = 0;

  // Running totals of what the policy evicted to make room.
  virtual uint64_t evicted_blocks() const { return 0; }
};

enum class PolicyKind {
  kPaged,         // the manager, with prefix sharing
  kPagedNoShare,  // the manager, without
  kContiguous,    // one region per request, of the longest total length
  kBuddy,         // one power-of-two region per request, doubled when full
  kCells,         // single slots anywhere (llama.cpp's unified cache)
  kLargePages,    // 2 MiB pages per layer and tensor (vAttention)
  kLargePages64K,
  kOracle,  // one region per request, of exactly its final length
};

absl::string_view PolicyName(PolicyKind kind);
// InvalidArgument names the policies that exist.
absl::StatusOr<PolicyKind> ParsePolicy(absl::string_view name);
absl::Span<const PolicyKind> AllPolicies();

enum class Eviction { kLru, kSegmentedLru };

absl::string_view EvictionName(Eviction eviction);
absl::StatusOr<Eviction> ParseEviction(absl::string_view name);

struct PolicyOptions {
  PolicyKind kind = PolicyKind::kPaged;
  // Rounded down to whole blocks by the policies that have blocks.
  uint64_t capacity_slots = 0;
  uint32_t block_tokens = 16;
  Eviction eviction = Eviction::kLru;
};

// `trace` is borrowed. InvalidArgument if the capacity or the block size is
// out of range.
absl::StatusOr<std::unique_ptr<MemoryPolicy>> MakeMemoryPolicy(
    const PolicyOptions& options, const Trace& trace);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_MEMORY_POLICY_H_
