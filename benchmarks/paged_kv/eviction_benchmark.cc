// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What it costs to take a block for new content from a full pool: from the
// pool and index alone, in the naive cache, and through the whole manager.

#include "benchmarks/paged_kv/run_cost_case.h"

namespace {

PAGED_KV_COST_BENCHMARK(BM_Eviction, "eviction");
PAGED_KV_COST_BENCHMARK(BM_NaiveEviction, "naive_eviction");
PAGED_KV_COST_BENCHMARK(BM_Prefill, "prefill");

}  // namespace
