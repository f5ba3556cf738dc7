// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Built-in workloads, for replays without a trace file. Each is fitted to the
// statistics of a public trace; workload.cc holds the numbers.

#ifndef PAGED_KV_BENCHMARKS_TOOL_WORKLOAD_H_
#define PAGED_KV_BENCHMARKS_TOOL_WORKLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/tool/trace.h"

namespace paged_kv::tool {

enum class WorkloadProfile {
  kAzureConversation,     // chat, medium prompts, nothing known to be shared
  kAzureCode,             // completion, long prompts, very short outputs
  kMooncakeConversation,  // chat, long prompts, 37 % of their tokens shared
};

absl::string_view WorkloadName(WorkloadProfile profile);
// "azure_conv", "azure_code" or "mooncake_conv"; InvalidArgument otherwise.
absl::StatusOr<WorkloadProfile> ParseWorkload(absl::string_view name);

struct WorkloadOptions {
  WorkloadProfile profile = WorkloadProfile::kMooncakeConversation;
  uint64_t seed = 1;
  uint32_t requests = 1000;
  // Arrivals per second; 0: the rate of the public trace.
  double requests_per_second = 0;
};

// The same options give the same trace on every machine and with every
// standard library.
Trace GenerateWorkload(const WorkloadOptions& options);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_WORKLOAD_H_
