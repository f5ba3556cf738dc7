// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_REPORT_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_REPORT_H_

#include <string>

#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/open_card.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

// What a card consists of and what its operations cost.
std::string CardText(const OpenedCard& card, const CardCalibration& costs);
nlohmann::ordered_json CardJson(const OpenedCard& card,
                                const CalibrationOptions& options,
                                const CardCalibration& costs);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_REPORT_H_
