// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The calls of an engine's step on a full pool.

#include "benchmarks/paged_kv/run_cost_case.h"

namespace {

PAGED_KV_COST_BENCHMARK(BM_KvCacheManager_AllocateFree, "allocate_free");
PAGED_KV_COST_BENCHMARK(BM_KvCacheManager_Free, "free");
PAGED_KV_COST_BENCHMARK(BM_KvCacheManager_Append, "append");
PAGED_KV_COST_BENCHMARK(BM_KvCacheManager_DecodeStep, "decode_step");
PAGED_KV_COST_BENCHMARK(BM_KvCacheManager_ForkAndWrite, "fork_and_write");

}  // namespace
