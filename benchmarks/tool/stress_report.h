// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_STRESS_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_STRESS_REPORT_H_

#include <string>

#include "benchmarks/tool/stress_run.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// What to type to see a violation again; `log_path`: where its log was saved,
// empty if it was not.
std::string StressAgain(const StressOptions& options,
                        const StressResult& result);

nlohmann::ordered_json StressJson(const StressOptions& options,
                                  const StressResult& result,
                                  const std::string& log_path);
std::string StressText(const StressOptions& options, const StressResult& result,
                       const std::string& log_path);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_STRESS_REPORT_H_
