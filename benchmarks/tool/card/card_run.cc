// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/card/card_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/card/card_units.h"
#include "benchmarks/tool/card/decode_probe.h"
#include "fpga_dma/kernels/kernel_abi.h"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using fpga_dma::DecodeDemand;
using fpga_dma::DecodePath;
using fpga_dma::DecodeRates;
using fpga_dma::DecodeTraffic;

template <typename T, typename F>
T Median(const std::vector<CardStep>& steps, F value) {
  std::vector<T> values;
  for (const CardStep& step : steps) values.push_back(value(step));
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A card is as fast as its slowest slab lets it be.
DecodeDemand DemandOf(const DecodeTraffic& traffic, const CardCase& card_case,
                      CardMode mode) {
  DecodeDemand demand;
  demand.layers = card_case.shape.layers;
  demand.group_heads = card_case.query_heads / card_case.shape.kv_heads;
  demand.slabs = static_cast<uint32_t>(traffic.kv_read.size());
  const uint64_t most =
      *std::max_element(traffic.kv_read.begin(), traffic.kv_read.end());
  const uint64_t on_card = most * traffic.kv_read.size();
  demand.kv_absent =
      mode == CardMode::kStreamed ? std::min(traffic.streamed, on_card) : 0;
  demand.kv_resident = on_card - demand.kv_absent;
  demand.kv_tail = traffic.kv_on_host;
  demand.inputs = traffic.inputs;
  demand.outputs = traffic.outputs;
  demand.readings = 1;
  return demand;
}

// What of a step's time belongs to what, by what it should have been made of.
StepShares SharesOf(const CardRun& run, const DecodeDemand& demand) {
  StepShares shares;
  const DecodeRates& rates = run.rates;
  const uint64_t on_card = demand.kv_resident + demand.kv_absent;
  absl::Duration left = run.step_time;
  const auto take = [&](absl::Duration* share, absl::Duration time) {
    *share = std::min(left, time);
    left -= *share;
  };
  if (on_card > 0) {
    const DecodeTraffic& traffic = run.steps.back().traffic;
    const absl::Duration kernel =
        demand.layers * fpga_dma::CardTime(rates, demand.group_heads, on_card);
    DecodeRates memory_only = rates;
    memory_only.card_flops = 0;
    const absl::Duration memory =
        demand.layers *
        fpga_dma::CardTime(memory_only, demand.group_heads, on_card);
    take(memory < kernel ? &shares.arithmetic : &shares.memory, kernel);
    const uint64_t launches = (traffic.launches + traffic.kv_read.size() - 1) /
                              traffic.kv_read.size();
    take(&shares.launch,
         static_cast<int64_t>(launches) * demand.layers * rates.launch);
    absl::Duration sync;
    for (const fpga_dma::DecodeEvent& event : run.steps.back().events) {
      if (event.what == "upload" || event.what == "download") {
        sync += event.finish - event.start;
      }
    }
    take(&shares.sync, sync);
    if (demand.kv_absent > 0) take(&shares.stream, left);
  }
  shares.host = left;
  return shares;
}

}  // namespace

DecodePath PathOf(CardMode mode) {
  switch (mode) {
    case CardMode::kHost:
      return DecodePath::kHost;
    case CardMode::kStreamed:
      return DecodePath::kStreamed;
    default:
      return DecodePath::kHybrid;
  }
}

CardMode ChooseMode(const DecodeRates& rates, const DecodeDemand& demand) {
  switch (ChoosePath(rates, demand)) {
    case DecodePath::kHost:
      return CardMode::kHost;
    case DecodePath::kStreamed:
      return CardMode::kStreamed;
    case DecodePath::kHybrid:
      break;
  }
  return demand.kv_absent == 0 ? CardMode::kResident : CardMode::kHybrid;
}

DecodeRates RatesOf(const OpenedCard& card, const CardCalibration& costs,
                    const CardCase& card_case) {
  DecodeRates rates;
  rates.upload_setup = costs.upload.setup;
  rates.upload_bytes_per_second = costs.upload.bytes_per_second;
  rates.download_setup = costs.download.setup;
  rates.download_bytes_per_second = costs.download.bytes_per_second;
  rates.channels = card.device->info().channels;
  rates.launch = costs.launch;
  rates.host_bytes_per_second = card_case.host_bytes_per_second;
  const absl::StatusOr<DecodeUnits> units =
      FindDecodeUnits(card.device->info(), card_case.shape.kv_heads);
  const size_t used = units.ok() ? units->banks.size() : 1;
  double slowest = costs.banks.empty() ? 1 : costs.banks[0].bytes_per_second;
  for (size_t i = 0; i < std::min(used, costs.banks.size()); ++i) {
    slowest = std::min(slowest, costs.banks[i].bytes_per_second);
  }
  rates.card_bytes_per_second = slowest * static_cast<double>(used);
  if (card.board.has_value()) {
    size_t counted = 0;
    for (const fpga_dma::BoardComputeUnit& unit : card.board->compute_units) {
      if (unit.kernel != fpga_dma::kDecodeKernel || counted++ >= used) continue;
      rates.card_flops += 2.0 * unit.lanes * card.board->clock_hz;
    }
  }
  return rates;
}

absl::StatusOr<DecodeDemand> DemandOf(const OpenedCard& card,
                                      const CardCase& card_case) {
  PAGED_KV_ASSIGN_OR_RETURN(
      const DecodeUnits units,
      FindDecodeUnits(card.device->info(), card_case.shape.kv_heads));
  DecodeDemand demand;
  demand.layers = card_case.shape.layers;
  demand.group_heads = card_case.query_heads / card_case.shape.kv_heads;
  demand.slabs = static_cast<uint32_t>(units.banks.size());
  const uint64_t token =
      BytesPerToken(card_case.shape).value() / card_case.shape.layers;
  const uint32_t block_tokens = card_case.shape.block_tokens;
  const uint64_t whole = card_case.WholeBlocks(card_case.context);
  const uint64_t resident = card_case.ResidentBlocks(card_case.context);
  const auto bytes = [&](uint64_t tokens) {
    return tokens * token * card_case.batch;
  };
  demand.kv_resident = bytes(resident * block_tokens);
  demand.kv_absent = bytes((whole - resident) * block_tokens);
  demand.kv_tail = bytes(card_case.context % block_tokens + 1);
  const uint64_t rows = uint64_t{card_case.batch} * card_case.query_heads;
  const uint64_t items =
      uint64_t{card_case.batch} * card_case.shape.kv_heads * units.splits;
  demand.inputs = rows * card_case.shape.head_dim * 2 +
                  card_case.batch * whole * sizeof(uint32_t) +
                  (items + demand.slabs) * fpga_dma::kBeatBytes;
  demand.outputs = rows * units.splits * card_case.shape.head_dim * 4 +
                   (items + demand.slabs) * fpga_dma::kBeatBytes;
  return demand;
}

absl::StatusOr<CardRun> RunCard(const OpenedCard& card,
                                const CardCalibration& costs,
                                const CardCase& card_case, Progress& progress) {
  CardRun run;
  run.card_case = card_case;
  run.rates = RatesOf(card, costs, card_case);
  PAGED_KV_ASSIGN_OR_RETURN(const DecodeDemand expected,
                            DemandOf(card, card_case));
  run.mode = card_case.mode == CardMode::kAuto ? ChooseMode(run.rates, expected)
                                               : card_case.mode;
  if (run.mode == CardMode::kResident && expected.kv_absent > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mode resident with ", 100 * card_case.resident,
        " % of the blocks on the card; choose --resident=1, or --mode=hybrid "
        "or streamed"));
  }
  run.predicted = PredictStep(PathOf(run.mode), run.rates, expected);
  PAGED_KV_ASSIGN_OR_RETURN(const std::unique_ptr<CardBatch> batch,
                            CardBatch::Create(card.device.get(), card_case));
  progress.Start("prefill, layers");
  PAGED_KV_ASSIGN_OR_RETURN(run.hand_off, batch->Prefill(progress));
  progress.Start("decode, steps");
  for (uint32_t i = 0; i < card_case.steps; ++i) {
    progress.Update(i, card_case.steps);
    PAGED_KV_ASSIGN_OR_RETURN(CardStep step, batch->Step(run.mode));
    if (!(step.max_error <= run.max_error)) run.max_error = step.max_error;
    run.steps.push_back(std::move(step));
  }
  progress.Clear();
  run.step_time = Median<absl::Duration>(
      run.steps, [](const CardStep& step) { return step.time; });
  run.bound = Median<absl::Duration>(run.steps, [&](const CardStep& step) {
    return PredictStep(PathOf(run.mode), run.rates,
                       DemandOf(step.traffic, card_case, run.mode));
  });
  run.bound_ratio = absl::FDivDuration(run.step_time, run.bound);
  run.bank_imbalance = Median<double>(run.steps, [](const CardStep& step) {
    uint64_t most = 0, all = 0;
    for (uint64_t bytes : step.traffic.kv_read) {
      most = std::max(most, bytes);
      all += bytes;
    }
    return all == 0 ? 0
                    : static_cast<double>(most) *
                              static_cast<double>(step.traffic.kv_read.size()) /
                              static_cast<double>(all) -
                          1;
  });
  run.shares =
      SharesOf(run, DemandOf(run.steps.back().traffic, card_case, run.mode));
  return run;
}

}  // namespace paged_kv::tool
