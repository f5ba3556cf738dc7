// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A replay's result in the forms that people and programs want.

#ifndef PAGED_KV_BENCHMARKS_TOOL_REPLAY_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_REPLAY_REPORT_H_

#include <cstdint>
#include <string>

#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/replay_runner.h"
#include "benchmarks/tool/trace.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// The keys that every report begins with: schema_version, command, seed and
// what was read: trace, trace_format, trace_sha256 (null if generated).
nlohmann::ordered_json ReportHeader(const std::string& command, uint64_t seed,
                                    const Trace& trace);

// A share of slots per state, without the states that cannot occur in it.
nlohmann::ordered_json WasteJson(const SlotShares& shares);

nlohmann::ordered_json ReplayJson(const Trace& trace,
                                  const ReplaySummary& summary, uint64_t seed);
std::string ReplayText(const Trace& trace, const ReplaySummary& summary);
// One row per request.
std::string ReplayCsv(const Trace& trace, const ReplaySummary& summary);
// Serial: hit rate along the trace. Trace: slot states and requests over time.
Plot ReplayPlot(const Trace& trace, const ReplaySummary& summary);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_REPLAY_REPORT_H_
