// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_MEASURE_ATTENTION_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_MEASURE_ATTENTION_H_

#include "absl/status/statusor.h"
#include "benchmarks/tool/kernels/attention_case.h"
#include "benchmarks/tool/kernels/attention_result.h"
#include "benchmarks/tool/progress.h"

namespace paged_kv::tool {

// Measures one complete case and what bounds it, in turns, and compares some
// of its outputs with the reference. A turn of decode passes over all layers,
// so that each finds its K/V in memory and not in a cache; one of prefill,
// which arithmetic bounds, over as many as take a tenth of a second.
//
// Errors of AttentionPlan for what the kernels do not take; ResourceExhausted
// if the system gives no memory.
absl::StatusOr<AttentionResult> MeasureAttention(
    const AttentionCase& attention_case, const MeasureOptions& options,
    Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_MEASURE_ATTENTION_H_
