// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The page tables of a step of 256 sequences.

#include "benchmarks/paged_kv/run_cost_case.h"

namespace {

PAGED_KV_COST_BENCHMARK(BM_PageTable_Export, "export");

}  // namespace
