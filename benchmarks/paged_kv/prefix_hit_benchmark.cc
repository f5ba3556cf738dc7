// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A prompt of which 128 blocks are cached.

#include "benchmarks/paged_kv/run_cost_case.h"

namespace {

PAGED_KV_COST_BENCHMARK(BM_PrefixHit_Lookup, "lookup");
PAGED_KV_COST_BENCHMARK(BM_PrefixHit_Admit, "hit");

}  // namespace
