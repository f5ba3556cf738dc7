// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_PAGED_KV_COST_CASE_H_
#define PAGED_KV_BENCHMARKS_PAGED_KV_COST_CASE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace paged_kv::benchmarks {

inline constexpr uint32_t kBlockTokens = 16;

// One operation on a pool that is full of cached content, in an order that
// memory does not know. Its cost must not depend on the pool's size. Measured
// in time by the benchmarks and in instructions by count_instructions.
class CostCase {
 public:
  virtual ~CostCase() = default;

  // Runs of one batch: Prepare(), Run() so many times, Finish(). A multiple of
  // it has every kind of run in its true proportion.
  virtual int batch() const { return 64; }
  // What one run does so many of (blocks, tokens, ...).
  virtual int units() const { return 1; }
  // Memory that the pool has of its own: metadata and stored tokens.
  virtual size_t footprint_bytes() const = 0;

  // Not measured: make and take away what the runs need.
  virtual void Prepare() {}
  virtual void Finish() {}
  // Measured. Aborts if the manager refuses.
  virtual void Run() = 0;
};

using CostCaseFactory = std::unique_ptr<CostCase> (*)(uint32_t blocks);

struct NamedCostCase {
  const char* name;
  const char* unit;  // of CostCase::units()
  CostCaseFactory make;
};

absl::Span<const NamedCostCase> AllCostCases();
// Null if there is no case of that name.
const NamedCostCase* FindCostCase(absl::string_view name);

// An evicting allocation without the planner: take, unindex, index anew; and
// the same in the naive cache (naive_prefix_cache.h).
std::unique_ptr<CostCase> MakeEviction(uint32_t blocks);
std::unique_ptr<CostCase> MakeNaiveEviction(uint32_t blocks);
// A prompt of 64 unknown blocks: planned, committed, retired, freed.
std::unique_ptr<CostCase> MakePrefill(uint32_t blocks);
// A prompt of one unknown block, likewise.
std::unique_ptr<CostCase> MakeAllocateFree(uint32_t blocks);
// Free() of a sequence of 8 blocks.
std::unique_ptr<CostCase> MakeFree(uint32_t blocks);
// One token for one sequence, and for 256 sequences in one step. Every 16th
// token takes a block.
std::unique_ptr<CostCase> MakeAppend(uint32_t blocks);
std::unique_ptr<CostCase> MakeDecodeStep(uint32_t blocks);
// Fork, the copy-on-write of the child's first token, and the child's end.
std::unique_ptr<CostCase> MakeForkAndWrite(uint32_t blocks);
// A prompt of which 128 blocks are cached: looked up; planned, committed and
// retired.
std::unique_ptr<CostCase> MakeLookup(uint32_t blocks);
std::unique_ptr<CostCase> MakeHit(uint32_t blocks);
// Page tables of 256 sequences of 3 blocks.
std::unique_ptr<CostCase> MakeExport(uint32_t blocks);
// No operation: what the measurement itself costs.
std::unique_ptr<CostCase> MakeNothing(uint32_t blocks);

}  // namespace paged_kv::benchmarks

#endif  // PAGED_KV_BENCHMARKS_PAGED_KV_COST_CASE_H_
