// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_UNROLL_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_UNROLL_H_

// Before a loop of at most 16 passes, a constant number: unrolls it whole, so
// that an array indexed by its counter lies in registers.
#if defined(__clang__)
#define PAGED_KV_TOOL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PAGED_KV_TOOL_UNROLL _Pragma("GCC unroll 16")
#endif

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_UNROLL_H_
