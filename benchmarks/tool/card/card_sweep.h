// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_SWEEP_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_SWEEP_H_

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/card/open_card.h"
#include "benchmarks/tool/plot.h"
#include "benchmarks/tool/progress.h"
#include "nlohmann/json.hpp"

namespace paged_kv::tool {

struct CardSweepOptions {
  uint32_t points = 20;
  double from = 0.1;  // of device_bytes
  double to = 8.0;
  // What the card has for pages. Small, so that eight times as much is quickly
  // filled; what matters is the ratio.
  uint64_t device_bytes = uint64_t{64} << 20;
};

// A decode step over so many bytes of K and V.
struct CardSweepPoint {
  uint32_t context = 0;
  uint64_t kv_bytes = 0;
  double ratio = 0;     // kv_bytes / device_bytes
  double resident = 0;  // share of it that is on the card
  // By mode, in the order of kFixedCardModes; none: not everything fits.
  absl::optional<absl::Duration> time[std::size(kFixedCardModes)];
  absl::optional<absl::Duration> predicted[std::size(kFixedCardModes)];
  CardMode chosen = CardMode::kHost;  // by mode `auto`
  double max_error = 0;

  double AutoOverBest() const;
  // Prediction over time of mode `streamed`, which is its double-buffering
  // formula where pages are sent; 0 elsewhere.
  double StreamShare() const;
};

// Where the fastest mode changes.
struct BreakEven {
  CardMode below, above;
  double ratio = 0;
};

struct CardSweep {
  CardCase card_case;
  CardSweepOptions options;
  std::vector<CardSweepPoint> points;

  std::vector<BreakEven> BreakEvens() const;
  double WorstAutoOverBest() const;
  double WorstStreamShare() const;  // 0: nothing was streamed
};

// `card_case` gives the shape and the batch; contexts follow from the points.
absl::StatusOr<CardSweep> SweepCard(const OpenedCard& card,
                                    const CardCalibration& costs,
                                    const CardCase& card_case,
                                    const CardSweepOptions& options,
                                    Progress& progress);

std::string CardSweepText(const CardSweep& sweep);
nlohmann::ordered_json CardSweepJson(const CardSweep& sweep);
// Time per step against K/V bytes, a line per mode, and what `auto` chose.
Plot CardSweepPlot(const CardSweep& sweep);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_SWEEP_H_
