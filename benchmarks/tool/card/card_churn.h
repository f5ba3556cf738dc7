// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CHURN_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CHURN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/trace.h"
#include "fpga_dma/device.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

struct CardChurnOptions {
  uint32_t pages = 8192;  // on the card, a multiple of the splits
  // Share of the requests that are sampled twice: the second answer shares the
  // prompt's pages, and the first token that either writes copies the last one.
  double forked = 0.5;
  uint64_t seed = 1;
};

// What much coming, going and copying on write leaves of the pages' places.
struct CardChurn {
  std::string trace;
  uint64_t requests = 0;  // served
  uint64_t forks = 0;
  uint64_t copies = 0;     // pages copied on write
  uint64_t preempted = 0;  // for want of pages
  uint64_t steps = 0;
  uint32_t pages = 0;
  uint32_t stripes = 0, splits = 0;

  // Runs of neighbours, each of which one descriptor moves, summed over steps
  // and sequences; in one slab of the pool, as are the page's bytes.
  uint64_t page_bytes = 0;
  uint64_t pages_held = 0;
  uint64_t extents = 0;
  uint64_t lifo_extents = 0;  // had the free pages been a stack

  // What the card read in the steps that were looked at, [slabs].
  std::vector<uint64_t> kv_read;
  uint64_t read_steps = 0;
  uint64_t even_steps = 0;  // the busiest bank read up to 5 % more than the
                            // idlest

  double BytesPerDescriptor() const;
  double LifoBytesPerDescriptor() const;
  double DescriptorGain() const;  // of the first over the second
  // What the busiest bank read over what the idlest did, less 1.
  double BankSpread() const;
};

// The trace with this name in the folder traces/ of PAGED_KV_SHARED_DIR, or the
// built-in workload that is like it; CardChurn::trace tells which. `path`: a
// trace to read instead, if not empty.
absl::StatusOr<Trace> ChurnTrace(const std::string& path, uint64_t seed);

// Serves `trace` by continuous batching over a KvCacheManager whose sequences
// are at home on the card: who fits joins, each step adds a token to all, who
// is done leaves. Nothing is computed or moved; pages per bank are counted by
// CardDecode and the pool's geometry of `case_`, whose layers are taken as
// alike. Invariants of the manager are checked on the way.
//
// InvalidArgument for pages that are no multiple of the splits, or a trace
// without a request that fits; Internal for a broken invariant.
absl::StatusOr<CardChurn> RunCardChurn(fpga_dma::Device* device,
                                       const CardCase& card_case,
                                       const Trace& trace,
                                       const CardChurnOptions& options,
                                       Progress& progress);

std::string CardChurnText(const CardChurn& churn);
nlohmann::ordered_json CardChurnJson(const CardChurn& churn);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_CHURN_H_
