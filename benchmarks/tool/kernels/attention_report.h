// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measured attention for people, for programs and as a picture.

#ifndef PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "benchmarks/tool/kernels/attention_result.h"
#include "benchmarks/tool/plot.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// "f32 FMA" for PeakRate::name "f32_fma", and so on.
std::string PeakName(absl::string_view name);

// REQUIRES of all three: results of one command, at least one.
std::string AttentionText(const std::vector<AttentionResult>& results);
// A single result's keys stand beside the common ones; several are "rows".
nlohmann::ordered_json AttentionJson(
    const std::vector<AttentionResult>& results, uint64_t seed);
// Arithmetic intensity against speed, under the roofs of memory and
// arithmetic (Williams et al. 2009, "Roofline").
Plot RooflinePlot(const std::vector<AttentionResult>& results);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_KERNELS_ATTENTION_REPORT_H_
