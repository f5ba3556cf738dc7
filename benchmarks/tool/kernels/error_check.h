// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ERROR_CHECK_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ERROR_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "attention/attention_plan.h"
#include "attention/parallel_for.h"
#include "benchmarks/tool/kernels/kv_batch.h"

namespace paged_kv::tool {

// An output may differ from the reference by `absolute`, or by `relative`
// times its size.
struct ErrorLimits {
  double absolute = 0;
  double relative = 0;
};
// 1e-3 and 1e-2, of f32 pages 1e-5 and 1e-5.
ErrorLimits LimitsFor(DType dtype);

struct ErrorCheck {
  double max_error = 0;      // largest absolute difference; NaN if any is
  double max_reference = 0;  // largest output of the reference, by size
  uint64_t outputs = 0;      // compared numbers
  uint64_t samples = 0;      // of (layer, query, KV head)
  bool within_limits = true;
};

// Runs the plan on the first and the last layer and compares some queries of
// some KV heads, all query heads of each, with attention in double precision
// over the same stored K and V.
absl::StatusOr<ErrorCheck> CheckSampledHeads(KvBatch& batch,
                                             attention::AttentionPlan& plan,
                                             attention::ParallelFor& parallel,
                                             uint64_t seed);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ERROR_CHECK_H_
