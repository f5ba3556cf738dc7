// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_sweep.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/tool/card/card_batch.h"
#include "benchmarks/tool/card/card_run.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

constexpr size_t kModes = std::size(kFixedCardModes);

size_t IndexOf(CardMode mode) {
  return static_cast<size_t>(
      std::find(std::begin(kFixedCardModes), std::end(kFixedCardModes), mode) -
      std::begin(kFixedCardModes));
}

size_t Fastest(const CardSweepPoint& point) {
  size_t best = IndexOf(CardMode::kHost);
  for (size_t i = 0; i < kModes; ++i) {
    if (point.time[i].has_value() && *point.time[i] < *point.time[best]) {
      best = i;
    }
  }
  return best;
}

absl::StatusOr<CardSweepPoint> MeasurePoint(const OpenedCard& card,
                                            const CardCalibration& costs,
                                            const CardCase& card_case,
                                            uint64_t device_bytes) {
  CardSweepPoint point;
  point.context = card_case.context;
  point.kv_bytes = card_case.KvBytes();
  point.ratio =
      static_cast<double>(point.kv_bytes) / static_cast<double>(device_bytes);
  point.resident = card_case.resident;
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<CardBatch> batch,
                            CardBatch::Create(card.device.get(), card_case));
  Progress quiet(nullptr);
  PAGED_KV_RETURN_IF_ERROR(batch->Prefill(quiet).status());
  PAGED_KV_ASSIGN_OR_RETURN(const fpga_dma::DecodeDemand demand,
                            DemandOf(card, card_case));
  const fpga_dma::DecodeRates rates = RatesOf(card, costs, card_case);
  for (size_t i = 0; i < kModes; ++i) {
    const CardMode mode = kFixedCardModes[i];
    if (mode == CardMode::kResident && demand.kv_absent > 0) continue;
    PAGED_KV_ASSIGN_OR_RETURN(const CardStep step, batch->Step(mode));
    point.time[i] = step.time;
    point.predicted[i] = PredictStep(PathOf(mode), rates, demand);
    if (!(step.max_error <= point.max_error)) point.max_error = step.max_error;
  }
  point.chosen = ChooseMode(rates, demand);
  return point;
}

}  // namespace

double CardSweepPoint::AutoOverBest() const {
  return absl::FDivDuration(*time[IndexOf(chosen)], *time[Fastest(*this)]);
}

double CardSweepPoint::StreamShare() const {
  if (resident >= 1) return 0;
  const size_t i = IndexOf(CardMode::kStreamed);
  return absl::FDivDuration(*predicted[i], *time[i]);
}

std::vector<BreakEven> CardSweep::BreakEvens() const {
  std::vector<BreakEven> changes;
  for (size_t i = 1; i < points.size(); ++i) {
    const size_t before = Fastest(points[i - 1]);
    const size_t after = Fastest(points[i]);
    if (before == after) continue;
    BreakEven change{kFixedCardModes[before], kFixedCardModes[after],
                     std::sqrt(points[i - 1].ratio * points[i].ratio)};
    // Where the lines between the points cross, in logarithms, if both modes
    // are possible on both sides.
    const auto difference = [&](const CardSweepPoint& p) {
      return std::log(absl::FDivDuration(*p.time[before], *p.time[after]));
    };
    if (points[i - 1].time[after].has_value() &&
        points[i].time[before].has_value()) {
      const double low = difference(points[i - 1]);
      const double high = difference(points[i]);
      change.ratio =
          points[i - 1].ratio *
          std::pow(points[i].ratio / points[i - 1].ratio, low / (low - high));
    }
    changes.push_back(change);
  }
  return changes;
}

double CardSweep::WorstAutoOverBest() const {
  double worst = 1;
  for (const CardSweepPoint& point : points) {
    worst = std::max(worst, point.AutoOverBest());
  }
  return worst;
}

double CardSweep::WorstStreamShare() const {
  double worst = 0;
  for (const CardSweepPoint& point : points) {
    const double share = point.StreamShare();
    if (share > 0 && (worst == 0 || share < worst)) worst = share;
  }
  return worst;
}

absl::StatusOr<CardSweep> SweepCard(const OpenedCard& card,
                                    const CardCalibration& costs,
                                    const CardCase& card_case,
                                    const CardSweepOptions& options,
                                    Progress& progress) {
  CardSweep sweep;
  sweep.card_case = card_case;
  sweep.options = options;
  const double token_bytes =
      static_cast<double>(BytesPerToken(card_case.shape).value()) *
      card_case.batch;
  progress.Start("sweep, points");
  for (uint32_t i = 0; i < options.points; ++i) {
    progress.Update(i, options.points);
    const double ratio =
        options.points == 1
            ? options.from
            : options.from * std::pow(options.to / options.from,
                                      i / (options.points - 1.0));
    CardCase point = card_case;
    // A token behind a whole block, so that no block fills in the few steps.
    const uint32_t block_tokens = point.shape.block_tokens;
    const double blocks = ratio * static_cast<double>(options.device_bytes) /
                          token_bytes / block_tokens;
    point.context =
        static_cast<uint32_t>(std::max(1.0, std::round(blocks))) * block_tokens;
    point.steps = kModes;
    point.resident = std::min(1.0, static_cast<double>(options.device_bytes) /
                                       static_cast<double>(point.KvBytes()));
    PAGED_KV_ASSIGN_OR_RETURN(
        CardSweepPoint measured,
        MeasurePoint(card, costs, point, options.device_bytes));
    sweep.points.push_back(std::move(measured));
  }
  progress.Clear();
  return sweep;
}

}  // namespace paged_kv::tool
