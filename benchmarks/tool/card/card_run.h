// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_H_
#define PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/tool/card/calibration.h"
#include "benchmarks/tool/card/card_batch.h"
#include "benchmarks/tool/card/card_case.h"
#include "benchmarks/tool/card/open_card.h"
#include "benchmarks/tool/progress.h"
#include "fpga_dma/decode/decode_costs.h"

namespace paged_kv::tool {

// Where the time of a step goes; the parts add up to it. What runs beside
// something slower counts with that.
struct StepShares {
  absl::Duration sync;    // transfers of inputs and outputs
  absl::Duration launch;  // of kernels
  absl::Duration memory;  // kernels, as far as they wait for pages
  absl::Duration arithmetic;
  absl::Duration host;    // attention by the host that hides behind nothing
  absl::Duration stream;  // waiting for pages that are sent
};

struct CardRun {
  CardCase card_case;
  CardMode mode = CardMode::kHost;  // as chosen
  fpga_dma::DecodeRates rates;
  HandOff hand_off;
  std::vector<CardStep> steps;

  absl::Duration step_time;  // median
  absl::Duration bound;      // of a step, see below
  absl::Duration predicted;  // by decode_costs.h
  double bound_ratio = 0;    // step_time / bound
  double max_error = 0;
  // The slab that most is read from against the mean of all.
  double bank_imbalance = 0;
  StepShares shares;
};

// What the costs of a card and the speed of its host mean for decoding with
// `stripes * splits` units.
fpga_dma::DecodeRates RatesOf(const OpenedCard& card,
                              const CardCalibration& costs,
                              const CardCase& card_case);

// What a layer of the next step of `card_case` is about, by its lengths alone.
absl::StatusOr<fpga_dma::DecodeDemand> DemandOf(const OpenedCard& card,
                                                const CardCase& card_case);

// The prediction's name for a mode; what resident and hybrid have in common.
fpga_dma::DecodePath PathOf(CardMode mode);
// What mode `auto` is for.
CardMode ChooseMode(const fpga_dma::DecodeRates& rates,
                    const fpga_dma::DecodeDemand& demand);

// Prefill with hand-off, then the case's steps. The bound of a step is, over
// its layers, max(K/V bytes / effective bandwidth of the slowest bank, flops /
// the board's arithmetic) + one packed upload, one launch and one packed
// download; in mode `host` the host's time alone; in mode `streamed` with pages
// to send the double-buffering formula.
absl::StatusOr<CardRun> RunCard(const OpenedCard& card,
                                const CardCalibration& costs,
                                const CardCase& card_case, Progress& progress);

}  // namespace paged_kv::tool

#endif  // PAGED_KV_BENCHMARKS_TOOL_CARD_CARD_RUN_H_
