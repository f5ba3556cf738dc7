// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_REPORT_H_

#include <string>

#include "benchmarks/tool/card/card_run.h"
#include "benchmarks/tool/plot.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

std::string CardRunText(const CardRun& run);
nlohmann::ordered_json CardRunJson(const CardRun& run);

// What happened when in the first layers of the last step: a lane each for
// streams, uploads, kernels, the host and downloads, and in it a row for each
// of what went on at once.
Plot CardTimelinePlot(const CardRun& run);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_REPORT_H_
